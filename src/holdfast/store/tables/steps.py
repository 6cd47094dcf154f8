"""What a task has finished so far. A successor goes on from there, and pays for nothing twice."""

from holdfast.store.database import Tx


def read(tx: Tx, task_id: str) -> dict[str, str]:
    """The outputs by the names of the steps."""
    rows = tx.all("SELECT step, output FROM steps WHERE account_id = ? AND task_id = ?", (tx.account, task_id))
    return dict(rows)


def keep(tx: Tx, task_id: str, step: str, output: str, now: int) -> None:
    tx.execute(
        "INSERT INTO steps (account_id, task_id, step, at, output) VALUES (?, ?, ?, ?, ?)",
        (tx.account, task_id, step, now, output),
    )


def delete(tx: Tx, task_id: str) -> None:
    tx.execute("DELETE FROM steps WHERE account_id = ? AND task_id = ?", (tx.account, task_id))
