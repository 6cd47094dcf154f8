"""Recall: the index of documents, and the operations that search it."""
