"""Searches of stored files: embedded and over HTTP, synchronous and asynchronous, on both databases."""

from holdfast.testing.contract.recall.file_searches import FileSearchContract


class TestFileSearches(FileSearchContract):
    pass
