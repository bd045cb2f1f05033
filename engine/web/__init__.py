"""The pages of `tocsin serve`: incidents in a browser, read from the store; nothing on them changes anything.

The pages work without JavaScript and load nothing from other hosts. Imports the model, the store and its own libraries only.
"""

from engine.web.app import application
from engine.web.export import write_pages
from engine.web.server import Listener, listen_on, serve

__all__ = ["Listener", "application", "listen_on", "serve", "write_pages"]
