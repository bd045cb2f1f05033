"""tocsin.yml: read, checked as a whole, and turned into settings. Every error comes at once, with its place in the file."""

from engine.config.settings import Settings, SourceSettings, load
from engine.config.web import WebSettings, listen_address

__all__ = ["Settings", "SourceSettings", "WebSettings", "listen_address", "load"]
