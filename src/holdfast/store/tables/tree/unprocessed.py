"""The nodes to process: files with a new content, and folders whose children have changed.

All times are the database's, in microseconds.
"""

from collections.abc import Sequence

from holdfast.store.database import NOW, Tx
from holdfast.store.tables.tree.nodes import subtree_range

TASK_PREFIX = "task_process_"
"""The id of the task that processes the nodes of an account is this, and the account."""
FILE_DELAY = 200_000
FOLDER_DELAY = 1_000_000
"""How long a folder waits, so that a burst of changes makes its summary once."""
_NO_TASK = (
    "NOT EXISTS (SELECT 1 FROM tasks t WHERE t.account_id = u.account_id"
    f" AND t.task_id = '{TASK_PREFIX}' || u.account_id AND t.status IN ('pending', 'running'))"
)


def add(tx: Tx, node_ids: Sequence[int], delay: int = FILE_DELAY) -> None:
    """Register nodes. One that is registered already keeps its time."""
    for node_id in node_ids:
        tx.execute(
            f"INSERT INTO unprocessed (account_id, node_id, due_at) VALUES (?, ?, {NOW} + ?) ON CONFLICT DO NOTHING",
            (tx.account, node_id, delay),
        )


def add_subtree(tx: Tx, root: str, path: str) -> None:
    """Register a node and all nodes below it."""
    first, end = subtree_range(path)
    tx.execute(
        f"INSERT INTO unprocessed (account_id, node_id, due_at) SELECT n.account_id, n.node_id, {NOW} FROM nodes n"
        " WHERE n.account_id = ? AND n.root = ? AND n.removed_at IS NULL"
        " AND (n.path = ? OR (n.path >= ? AND n.path < ?)) ON CONFLICT DO NOTHING",
        (tx.account, root, path, first, end),
    )


def delete(tx: Tx, node_ids: Sequence[int]) -> None:
    marks = ", ".join("?" * len(node_ids)) or "NULL"
    tx.execute(f"DELETE FROM unprocessed WHERE account_id = ? AND node_id IN ({marks})", (tx.account, *node_ids))


def list_due(tx: Tx, limit: int) -> list[int]:
    """List nodes of the account that are due, earliest first."""
    rows = tx.all(
        f"SELECT node_id FROM unprocessed WHERE account_id = ? AND due_at <= {NOW} ORDER BY due_at LIMIT ?",
        (tx.account, limit),
    )
    return [row[0] for row in rows]


def postpone_all(tx: Tx, wait: int) -> None:
    """Process the nodes of the account that are due after `wait` microseconds."""
    tx.execute(
        f"UPDATE unprocessed SET due_at = {NOW} + ? WHERE (account_id, node_id) IN"
        f" (SELECT account_id, node_id FROM unprocessed WHERE account_id = ? AND due_at <= {NOW}{_skip_locked(tx)})",
        (wait, tx.account),
    )


def make_due(tx: Tx, account: str | None) -> None:
    """Process the nodes of an account, or of all accounts, now."""
    condition, params = ("TRUE", ()) if account is None else ("account_id = ?", (account,))
    tx.execute(
        f"UPDATE unprocessed SET due_at = {NOW} WHERE (account_id, node_id) IN"
        f" (SELECT account_id, node_id FROM unprocessed WHERE due_at > {NOW} AND {condition}{_skip_locked(tx)})",
        params,
    )


def _skip_locked(tx: Tx) -> str:
    """Leave out rows that are locked: they are being processed. To wait for them could be a deadlock."""
    return f"{tx.dialect.lock_row} SKIP LOCKED" if tx.dialect.lock_row else ""


def list_due_accounts(tx: Tx, limit: int) -> list[str]:
    """List accounts that have nodes to process now, and no task that does so."""
    rows = tx.all(
        f"SELECT DISTINCT account_id FROM (SELECT u.account_id FROM unprocessed u WHERE u.due_at <= {NOW}"
        f" AND {_NO_TASK} ORDER BY u.due_at LIMIT ?) AS due ORDER BY account_id",
        (limit,),
    )
    return [row[0] for row in rows]


def micros_until_due(tx: Tx) -> int | None:
    """The time until a node of any account is due that no task processes. Negative if it is overdue."""
    row = tx.one(f"SELECT u.due_at - {NOW} FROM unprocessed u WHERE {_NO_TASK} ORDER BY u.due_at LIMIT 1")
    return row[0] if row else None


def count_subtree(tx: Tx, root: str, path: str) -> int:
    """Count the nodes at and below a path that are to be processed."""
    first, end = subtree_range(path)
    row = tx.one(
        "SELECT COUNT(*) FROM unprocessed u JOIN nodes n ON n.account_id = u.account_id AND n.node_id = u.node_id"
        " WHERE u.account_id = ? AND n.root = ? AND n.removed_at IS NULL"
        " AND (n.path = ? OR (n.path >= ? AND n.path < ?))",
        (tx.account, root, path, first, end),
    )
    return int(row[0]) if row else 0


def has(tx: Tx, node_id: int) -> bool:
    """Whether a node is to be processed."""
    return tx.one("SELECT 1 FROM unprocessed WHERE account_id = ? AND node_id = ?", (tx.account, node_id)) is not None


def count(tx: Tx, account: str | None) -> int:
    """Count the nodes of an account, or of all accounts, that are to be processed."""
    condition, params = ("TRUE", ()) if account is None else ("account_id = ?", (account,))
    return int(tx.all(f"SELECT COUNT(*) FROM unprocessed WHERE {condition}", params)[0][0])
