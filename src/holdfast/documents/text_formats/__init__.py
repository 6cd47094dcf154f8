"""Formats whose files are texts."""
