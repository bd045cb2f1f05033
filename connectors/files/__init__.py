"""Files as a source: plain, growing, rotated, gzip, zstd. Pure Python; imports the model, errors and ports only."""

from connectors.files.reading import STDIN, Found, find, read_path, same_content

__all__ = ["STDIN", "Found", "find", "read_path", "same_content"]
