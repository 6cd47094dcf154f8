"""Summaries without a model: sentences are read, ranked and selected."""
