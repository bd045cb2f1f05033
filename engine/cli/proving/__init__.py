"""`tocsin prove`: put a marked line into a source, and watch it come through."""
