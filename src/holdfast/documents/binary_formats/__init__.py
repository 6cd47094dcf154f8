"""Formats whose text has to be extracted."""
