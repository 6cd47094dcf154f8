"""The store contract on both databases."""

from holdfast.testing.contract import StoreContract


class TestStore(StoreContract):
    """Runs with the fixture `open_database` of the conftest module."""
