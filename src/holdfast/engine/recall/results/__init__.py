"""Turns ranked documents into what a search returns."""
