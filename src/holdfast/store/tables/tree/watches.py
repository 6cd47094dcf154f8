"""Watches: resources that are read again at intervals. All times are the database's, except `created_at`."""

from typing import NamedTuple

from holdfast.store.database import NOW, Tx

_COLUMNS = (
    "watch_id, owner_id, user_id, uri, source, request, interval_seconds, is_active, created_at, next_at, last_run_at,"
    " last_task_id"
)
_OF_WATCH = "account_id = ? AND watch_id = ?"
MICROS_PER_SECOND = 1_000_000


class StoredWatch(NamedTuple):
    watch_id: str
    owner_id: str
    """The internal id of the user."""
    user_id: str
    uri: str
    source: str
    request: str
    """The JSON of what is asked for each time."""
    interval_seconds: int
    is_active: int
    created_at: int
    next_at: int
    last_run_at: int | None
    last_task_id: str | None


def insert_or_replace(tx: Tx, watch: StoredWatch) -> None:
    """Add a watch that is due after its interval. One of the same resource is replaced."""
    tx.execute("DELETE FROM resource_watches WHERE account_id = ? AND uri = ?", (tx.account, watch.uri))
    tx.execute(
        f"INSERT INTO resource_watches (account_id, {_COLUMNS})"
        f" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {NOW} + ?, {NOW}, ?)",
        (tx.account, *watch[:9], watch.interval_seconds * MICROS_PER_SECOND, watch.last_task_id),
    )


def find(tx: Tx, watch_id: str) -> StoredWatch | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM resource_watches WHERE {_OF_WATCH}", (tx.account, watch_id))
    return None if row is None else StoredWatch(*row)


def find_by_uri(tx: Tx, uri: str) -> StoredWatch | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM resource_watches WHERE account_id = ? AND uri = ?", (tx.account, uri))
    return None if row is None else StoredWatch(*row)


def list_of(tx: Tx, owner_id: str | None, limit: int) -> list[StoredWatch]:
    """List the watches of a user, or of the account, by their addresses."""
    condition, params = ("", ()) if owner_id is None else (" AND owner_id = ?", (owner_id,))
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM resource_watches WHERE account_id = ?{condition} ORDER BY uri LIMIT ?",
        (tx.account, *params, limit),
    )
    return [StoredWatch(*row) for row in rows]


def count_of(tx: Tx, owner_id: str) -> int:
    row = tx.one("SELECT COUNT(*) FROM resource_watches WHERE account_id = ? AND owner_id = ?", (tx.account, owner_id))
    return int(row[0]) if row else 0


def update(tx: Tx, watch_id: str, *, request: str, interval_seconds: int, is_active: bool) -> None:
    """Change a watch. It is due after its interval."""
    tx.execute(
        f"UPDATE resource_watches SET request = ?, interval_seconds = ?, is_active = ?, next_at = {NOW} + ?"
        f" WHERE {_OF_WATCH}",
        (request, interval_seconds, int(is_active), interval_seconds * MICROS_PER_SECOND, tx.account, watch_id),
    )


def record_run(tx: Tx, watch: StoredWatch, task_id: str | None) -> None:
    """Record that a watch was due. Without a task, it only waits for its next time."""
    changes, params = ("", ()) if task_id is None else (f", last_run_at = {NOW}, last_task_id = ?", (task_id,))
    tx.execute(
        f"UPDATE resource_watches SET next_at = {NOW} + ?{changes} WHERE {_OF_WATCH}",
        (watch.interval_seconds * MICROS_PER_SECOND, *params, tx.account, watch.watch_id),
    )


def delete(tx: Tx, watch_id: str) -> None:
    tx.execute(f"DELETE FROM resource_watches WHERE {_OF_WATCH}", (tx.account, watch_id))


def list_due(tx: Tx, limit: int) -> list[StoredWatch]:
    """List watches of the account that are due, earliest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM resource_watches WHERE account_id = ? AND is_active = 1 AND next_at <= {NOW}"
        " ORDER BY next_at LIMIT ?",
        (tx.account, limit),
    )
    return [StoredWatch(*row) for row in rows]


def list_due_accounts(tx: Tx, limit: int) -> list[str]:
    """List accounts that have watches to run now."""
    rows = tx.all(
        "SELECT DISTINCT account_id FROM (SELECT account_id FROM resource_watches WHERE is_active = 1"
        f" AND next_at <= {NOW} ORDER BY next_at LIMIT ?) AS due ORDER BY account_id",
        (limit,),
    )
    return [row[0] for row in rows]


def micros_until_due(tx: Tx) -> int | None:
    """The time until a watch of any account is due. Negative if it is overdue."""
    row = tx.one(f"SELECT next_at - {NOW} FROM resource_watches WHERE is_active = 1 ORDER BY next_at LIMIT 1")
    return row[0] if row else None
