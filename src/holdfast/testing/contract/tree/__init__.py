"""Contracts of the stored part of the `viking://` tree."""
