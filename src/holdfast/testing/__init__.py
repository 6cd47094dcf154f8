"""For people who test against Holdfast or write a backend for it: contracts, faults and a real PostgreSQL."""

from contextlib import suppress

with suppress(ImportError):  # the faults can be used without pytest
    import pytest

    pytest.register_assert_rewrite("holdfast.testing.contract", "holdfast.testing.faults.verification")
