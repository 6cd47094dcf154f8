"""Commits: sealing archives, summarising them in the background, and reading them."""
