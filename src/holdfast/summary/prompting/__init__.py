"""Summaries by a language model: the prompt, and the parsing of its reply."""
