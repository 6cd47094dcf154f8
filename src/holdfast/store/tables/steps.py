"""Outputs of the finished steps of a task. After a crash, the next attempt reuses them and repeats no model call."""

from holdfast.store.database import Tx


def read(tx: Tx, task_id: str) -> dict[str, str]:
    """The outputs of the finished steps by step name."""
    rows = tx.all("SELECT step, output FROM steps WHERE account_id = ? AND task_id = ?", (tx.account, task_id))
    return dict(rows)


def insert(tx: Tx, task_id: str, step: str, output: str, now: int) -> None:
    tx.execute(
        "INSERT INTO steps (account_id, task_id, step, at, output) VALUES (?, ?, ?, ?, ?)",
        (tx.account, task_id, step, now, output),
    )


def delete(tx: Tx, task_id: str) -> None:
    tx.execute("DELETE FROM steps WHERE account_id = ? AND task_id = ?", (tx.account, task_id))
