"""When to look whether a session is to be committed without being asked. Only what is due is looked at."""

from holdfast.store.database import Tx


def look_by(tx: Tx, log_id: int, due_at: int) -> bool:
    """Look at a session no later than `due_at`; whether that is sooner than it would have been anyway."""
    row = tx.one(
        "INSERT INTO watches (account_id, log_id, due_at) VALUES (?, ?, ?) ON CONFLICT (account_id, log_id)"
        " DO UPDATE SET due_at = excluded.due_at WHERE excluded.due_at < watches.due_at RETURNING 1",
        (tx.account, log_id, due_at),
    )
    return row is not None


def look_at(tx: Tx, log_id: int, due_at: int) -> None:
    tx.execute(
        "UPDATE watches SET due_at = ? WHERE account_id = ? AND log_id = ?",
        (due_at, tx.account, log_id),
    )


def due(tx: Tx, now: int, most: int) -> list[tuple[str, int]]:
    """The accounts and logs to look at, the longest due first."""
    rows = tx.all("SELECT account_id, log_id FROM watches WHERE due_at <= ? ORDER BY due_at LIMIT ?", (now, most))
    return [(row[0], row[1]) for row in rows]


def is_due(tx: Tx, log_id: int, now: int) -> bool:
    row = tx.one("SELECT 1 FROM watches WHERE account_id = ? AND log_id = ? AND due_at <= ?", (tx.account, log_id, now))
    return row is not None


def next_due(tx: Tx) -> int | None:
    row = tx.one("SELECT MIN(due_at) FROM watches")
    return row[0] if row else None


def delete(tx: Tx, log_id: int) -> None:
    tx.execute("DELETE FROM watches WHERE account_id = ? AND log_id = ?", (tx.account, log_id))
