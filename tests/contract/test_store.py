"""The store contract on both databases."""

import pytest

from holdfast.testing.contract import StoreContract


class TestStore(StoreContract):
    """Runs with the fixture `open_database` of the conftest module."""

    @pytest.fixture
    def target(self, target_without_tables: str) -> str:
        return target_without_tables
