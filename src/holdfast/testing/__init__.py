"""Tools to test programs that use Holdfast, or a new backend: contract tests, fault injection, a PostgreSQL server."""

from contextlib import suppress

with suppress(ImportError):  # fault injection can be used without pytest
    import pytest

    pytest.register_assert_rewrite("holdfast.testing.contract", "holdfast.testing.faults.verification")
