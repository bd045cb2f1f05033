"""Risks: what works in a cluster now and may break, judged from what it was asked. Pure; imports the model and codec."""
