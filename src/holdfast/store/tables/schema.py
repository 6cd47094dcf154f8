"""The state of the database itself."""

from holdfast.store.database import Tx


def ping(tx: Tx) -> bool:
    """Run the simplest statement. Return whether the database answers it correctly."""
    return tx.one("SELECT 1") == (1,)


def version(tx: Tx) -> int:
    """The number of the latest migration that was applied."""
    return int(tx.all("SELECT MAX(number) FROM schema_migrations")[0][0])
