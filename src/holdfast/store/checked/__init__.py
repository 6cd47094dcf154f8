"""Rows with a checksum: messages and archives."""
