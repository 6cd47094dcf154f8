"""The logs that have something to index. Workers read only those that are due.

A log is here from its first pending message until all its messages and overviews are indexed. If it is stale, its
documents are not valid any more, because its session was deleted or has another owner. All times are the database's, in
microseconds.
"""

from typing import NamedTuple

from holdfast.store.database import NOW, Tx

DELAY = 1_000_000
"""How long a new message waits, so that those that follow are indexed with it."""
_OF_LOG = "account_id = ? AND log_id = ?"


class UnindexedLog(NamedTuple):
    log_id: int
    is_stale: bool


def add(tx: Tx, log_id: int) -> None:
    """Register a log that has a pending message."""
    tx.execute(
        f"INSERT INTO unindexed (account_id, log_id, due_at, is_stale) VALUES (?, ?, {NOW} + {DELAY}, 0)"
        " ON CONFLICT DO NOTHING",
        (tx.account, log_id),
    )


def mark_stale(tx: Tx, log_id: int) -> None:
    """Declare the documents of a log invalid. Searches ignore them from now on."""
    tx.execute(
        f"INSERT INTO unindexed (account_id, log_id, due_at, is_stale) VALUES (?, ?, {NOW}, 1)"
        " ON CONFLICT (account_id, log_id) DO UPDATE SET is_stale = 1, due_at = excluded.due_at",
        (tx.account, log_id),
    )


def mark_clean(tx: Tx, log_id: int) -> None:
    """Declare that a log has no invalid documents any more."""
    tx.execute(f"UPDATE unindexed SET is_stale = 0 WHERE {_OF_LOG}", (tx.account, log_id))


def delete(tx: Tx, log_id: int) -> None:
    tx.execute(f"DELETE FROM unindexed WHERE {_OF_LOG}", (tx.account, log_id))


def find(tx: Tx, log_id: int) -> UnindexedLog | None:
    row = tx.one(f"SELECT log_id, is_stale FROM unindexed WHERE {_OF_LOG}", (tx.account, log_id))
    return None if row is None else UnindexedLog(row[0], bool(row[1]))


def page(tx: Tx, *, after: int, limit: int) -> list[UnindexedLog]:
    """List the logs of an account by their ids."""
    rows = tx.all(
        "SELECT log_id, is_stale FROM unindexed WHERE account_id = ? AND log_id > ? ORDER BY log_id LIMIT ?",
        (tx.account, after, limit),
    )
    return [UnindexedLog(log_id, bool(is_stale)) for log_id, is_stale in rows]


def list_due_accounts(tx: Tx, limit: int) -> list[str]:
    """List accounts that have logs to index now."""
    rows = tx.all(
        f"SELECT DISTINCT account_id FROM (SELECT account_id FROM unindexed WHERE due_at <= {NOW} ORDER BY due_at"
        " LIMIT ?) AS due ORDER BY account_id",
        (limit,),
    )
    return [row[0] for row in rows]


def micros_until_due(tx: Tx) -> int | None:
    """The time until a log of any account is due. Negative if it is overdue."""
    row = tx.one(f"SELECT MIN(due_at) - {NOW} FROM unindexed")
    return row[0] if row else None


def has_any(tx: Tx) -> bool:
    """Whether the account has something to index."""
    return tx.one("SELECT 1 FROM unindexed WHERE account_id = ? LIMIT 1", (tx.account,)) is not None
