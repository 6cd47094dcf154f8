"""Vectors of documents: made in the background, compared in memory or by an index."""
