"""The command line. The only package that imports both the engine and the connectors."""
