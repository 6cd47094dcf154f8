"""Understands a search: where it looks, and what its session adds to the query."""
