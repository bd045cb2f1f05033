"""Skimming: reading of a log only what may matter, at the speed of a search, and saying the same as if all of it were read.

It stands in front of the pure stages, whose answers it must not change (engine/pipeline is the reference, tests compare). It is
pure itself; numpy and Hyperscan make it fast and are loaded when the first lines are skimmed.
"""
