"""The text index."""
