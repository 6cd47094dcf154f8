"""Summaries by a model: the prompt, and the parsing of its answer."""
