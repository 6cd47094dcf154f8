"""The store contract on both databases."""

from holdfast.testing.contract import StoreContract


class TestStore(StoreContract):
    """With `open_database` from conftest."""
