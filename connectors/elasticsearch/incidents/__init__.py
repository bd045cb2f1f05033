"""Incidents written into Elasticsearch: a receiver that keeps a record. See receiver.py."""
