"""Packs: what an export reads of a subtree, and the import of a pack that was uploaded."""
