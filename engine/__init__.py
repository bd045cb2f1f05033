"""tocsin's engine: from raw log lines to incidents (see engine/pipeline.py for the whole flow on one screen)."""

__version__ = "0.2.0"
