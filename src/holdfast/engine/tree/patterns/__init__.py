"""Searching the tree by patterns: `grep` for lines of files, `glob` for names."""
