"""The command line: what people type, read and pipe. The only package that knows both the engine and the connectors."""
