"""Clients of language models and embedding models."""
