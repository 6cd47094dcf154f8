"""Transfers: files that clients upload in parts, and the bytes that they download."""
