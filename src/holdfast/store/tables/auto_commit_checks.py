"""Scheduled checks whether a session is due for an automatic commit. Workers read only the checks that are due."""

from holdfast.store.database import Tx


def schedule_at_or_before(tx: Tx, log_id: int, due_at: int) -> bool:
    """Schedule a check at `due_at`. Return False if the session already has one at or before that time."""
    row = tx.one(
        "INSERT INTO watches (account_id, log_id, due_at) VALUES (?, ?, ?) ON CONFLICT (account_id, log_id)"
        " DO UPDATE SET due_at = excluded.due_at WHERE excluded.due_at < watches.due_at RETURNING 1",
        (tx.account, log_id, due_at),
    )
    return row is not None


def reschedule(tx: Tx, log_id: int, due_at: int) -> None:
    """Move an existing check to `due_at`, which may be later than before."""
    tx.execute(
        "UPDATE watches SET due_at = ? WHERE account_id = ? AND log_id = ?",
        (due_at, tx.account, log_id),
    )


def list_due(tx: Tx, now: int, limit: int) -> list[tuple[str, int]]:
    """List the account and log of each check that is due, earliest first."""
    rows = tx.all("SELECT account_id, log_id FROM watches WHERE due_at <= ? ORDER BY due_at LIMIT ?", (now, limit))
    return [(row[0], row[1]) for row in rows]


def is_due(tx: Tx, log_id: int, now: int) -> bool:
    row = tx.one("SELECT 1 FROM watches WHERE account_id = ? AND log_id = ? AND due_at <= ?", (tx.account, log_id, now))
    return row is not None


def next_due(tx: Tx) -> int | None:
    """The time of the next check of any account."""
    row = tx.one("SELECT MIN(due_at) FROM watches")
    return row[0] if row else None


def delete(tx: Tx, log_id: int) -> None:
    tx.execute("DELETE FROM watches WHERE account_id = ? AND log_id = ?", (tx.account, log_id))
