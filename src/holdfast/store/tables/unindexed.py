"""The logs that have something to index. Workers read only those that are due.

A log is here from its first pending message until all its messages and overviews are indexed. If it is stale, its
documents are not valid any more, because its session was deleted or has another owner. All times are the database's, in
microseconds.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.store.database import NOW, Tx

TASK_PREFIX = "task_index_"
"""The id of the task that indexes the logs of an account is this, and the account."""
DELAY = 1_000_000
"""How long a new message waits, so that those that follow are indexed with it."""
_OF_LOG = "account_id = ? AND log_id = ?"
_NO_TASK = (
    "NOT EXISTS (SELECT 1 FROM tasks t WHERE t.account_id = u.account_id"
    f" AND t.task_id = '{TASK_PREFIX}' || u.account_id AND t.status IN ('pending', 'running'))"
)


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


def postpone(tx: Tx, log_id: int) -> None:
    """Index the rest of a log after the other logs that are due."""
    tx.execute(f"UPDATE unindexed SET due_at = {NOW} WHERE {_OF_LOG}", (tx.account, log_id))


def postpone_all(tx: Tx, wait: int) -> None:
    """Index the logs of the account that are due after `wait` microseconds."""
    tx.execute(f"UPDATE unindexed SET due_at = {NOW} + ? WHERE account_id = ? AND due_at <= {NOW}", (wait, tx.account))


def make_due(tx: Tx, account: str | None) -> None:
    """Index the logs of an account, or of all accounts, now."""
    condition, params = ("TRUE", ()) if account is None else ("account_id = ?", (account,))
    tx.execute(f"UPDATE unindexed SET due_at = {NOW} WHERE due_at > {NOW} AND {condition}", params)


def delete(tx: Tx, log_id: int) -> None:
    tx.execute(f"DELETE FROM unindexed WHERE {_OF_LOG}", (tx.account, log_id))


def lock(tx: Tx, log_id: int) -> UnindexedLog | None:
    """Find a log, and lock its row until the transaction ends."""
    row = tx.one(f"SELECT log_id, is_stale FROM unindexed WHERE {_OF_LOG}{tx.dialect.lock_row}", (tx.account, log_id))
    return None if row is None else UnindexedLog(row[0], bool(row[1]))


def find(tx: Tx, log_ids: Sequence[int]) -> list[UnindexedLog]:
    """Return those of some logs that have something to index."""
    rows = tx.all(
        f"SELECT log_id, is_stale FROM unindexed WHERE account_id = ? AND log_id IN ({', '.join('?' * len(log_ids))})"
        " ORDER BY log_id",
        (tx.account, *log_ids),
    )
    return [UnindexedLog(log_id, bool(is_stale)) for log_id, is_stale in rows]


def list_due(tx: Tx, limit: int) -> list[UnindexedLog]:
    """List logs of the account that are due, earliest first."""
    rows = tx.all(
        f"SELECT log_id, is_stale FROM unindexed WHERE account_id = ? AND due_at <= {NOW} ORDER BY due_at LIMIT ?",
        (tx.account, limit),
    )
    return [UnindexedLog(log_id, bool(is_stale)) for log_id, is_stale in rows]


def list_due_accounts(tx: Tx, limit: int) -> list[str]:
    """List accounts that have logs to index now, and no task that does so."""
    rows = tx.all(
        f"SELECT DISTINCT account_id FROM (SELECT u.account_id FROM unindexed u WHERE u.due_at <= {NOW}"
        f" AND {_NO_TASK} ORDER BY u.due_at LIMIT ?) AS due ORDER BY account_id",
        (limit,),
    )
    return [row[0] for row in rows]


def micros_until_due(tx: Tx) -> int | None:
    """The time until a log of any account is due that no task indexes. Negative if it is overdue."""
    row = tx.one(f"SELECT u.due_at - {NOW} FROM unindexed u WHERE {_NO_TASK} ORDER BY u.due_at LIMIT 1")
    return row[0] if row else None


def count(tx: Tx, account: str | None, owner_id: str | None) -> int:
    """Count the logs that have something to index: of an owner's sessions, of an account, or of all accounts."""
    if account is None:
        return int(tx.all("SELECT COUNT(*) FROM unindexed")[0][0])
    if owner_id is None:
        return int(tx.all("SELECT COUNT(*) FROM unindexed WHERE account_id = ?", (account,))[0][0])
    rows = tx.all(
        "SELECT COUNT(*) FROM unindexed u JOIN sessions s ON s.account_id = u.account_id AND s.log_id = u.log_id"
        " WHERE u.account_id = ? AND s.user_id = ?",
        (account, owner_id),
    )
    return int(rows[0][0])
