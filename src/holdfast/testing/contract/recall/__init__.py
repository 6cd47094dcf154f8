"""The contracts of searches."""
