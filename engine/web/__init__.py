"""The pages: incidents in a browser, from the store (`tocsin serve`, `tocsin pages`) or from a scan (`tocsin scan --html`).

They work without JavaScript and load nothing from other hosts. Imports the model, the picture, the store and its own libraries
only; pages.py and what it imports need no store and no server.
"""
