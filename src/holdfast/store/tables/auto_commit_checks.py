"""Scheduled checks whether a session is due for an automatic commit. Workers read only the checks that are due.

All times are the database's, in microseconds.
"""

from typing import NamedTuple

from holdfast.store.database import NOW, Tx

_OF_LOG = "account_id = ? AND log_id = ?"


class SessionTimes(NamedTuple):
    now: int
    last_commit_at: int
    """When the newest archive was sealed; 0 if there is none."""
    last_added_at: int | None
    """When the last message was added. None if the session had no check since then."""
    check_at: int | None
    """When the next check is due. None if none is scheduled."""


def read_times(tx: Tx, log_id: int) -> SessionTimes:
    key = (tx.account, log_id)
    row = tx.one(
        f"SELECT {NOW}, (SELECT COALESCE(sealed_at, created_at) FROM archives WHERE {_OF_LOG}"
        " ORDER BY number DESC LIMIT 1), (SELECT added_at FROM watches"
        f" WHERE {_OF_LOG}), (SELECT due_at FROM watches WHERE {_OF_LOG})",
        key * 3,
    )
    now, last_commit_at, last_added_at, check_at = row or (0, None, None, None)
    return SessionTimes(now, last_commit_at or 0, last_added_at, check_at)


def schedule(tx: Tx, log_id: int, due_at: int, added_at: int | None) -> None:
    """Schedule a check at `due_at`, or leave an earlier one. The last message was added at `added_at`, if known."""
    tx.execute(
        "INSERT INTO watches (account_id, log_id, due_at, added_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (account_id, log_id) DO UPDATE SET added_at = excluded.added_at,"
        " due_at = CASE WHEN excluded.due_at < watches.due_at THEN excluded.due_at ELSE watches.due_at END",
        (tx.account, log_id, due_at, added_at),
    )


def schedule_now(tx: Tx, log_id: int) -> None:
    """Schedule a check that is due at once."""
    schedule(tx, log_id, 0, None)


def reschedule(tx: Tx, log_id: int, due_at: int, added_at: int) -> None:
    """Move an existing check to `due_at`, which may be later than before."""
    tx.execute(f"UPDATE watches SET due_at = ?, added_at = ? WHERE {_OF_LOG}", (due_at, added_at, tx.account, log_id))


def postpone(tx: Tx, log_id: int, wait: int) -> None:
    """Move an existing check to `wait` microseconds from now."""
    tx.execute(f"UPDATE watches SET due_at = {NOW} + ? WHERE {_OF_LOG}", (wait, tx.account, log_id))


def list_due(tx: Tx, limit: int) -> list[tuple[str, int]]:
    """List the account and log of each check that is due, earliest first."""
    rows = tx.all(f"SELECT account_id, log_id FROM watches WHERE due_at <= {NOW} ORDER BY due_at LIMIT ?", (limit,))
    return [(row[0], row[1]) for row in rows]


def micros_until_due(tx: Tx) -> int | None:
    """The time until the next check of any account. Negative if it is overdue."""
    row = tx.one(f"SELECT MIN(due_at) - {NOW} FROM watches")
    return row[0] if row else None


def delete(tx: Tx, log_id: int) -> None:
    tx.execute(f"DELETE FROM watches WHERE {_OF_LOG}", (tx.account, log_id))
