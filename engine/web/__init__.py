"""The pages of `tocsin serve`: incidents to read in a browser, straight from the store, and nothing that changes them.

Readable without JavaScript; nothing comes from another host. Imports the model, the store and its own libraries only.
"""

from engine.web.app import application
from engine.web.export import write_pages
from engine.web.server import Door, open_door, serve

__all__ = ["Door", "application", "open_door", "serve", "write_pages"]
