"""Contracts of the stored part of the tree."""
