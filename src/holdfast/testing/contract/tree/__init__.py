"""The contracts of the tree of files."""
