"""The owners of documents that may have no vector yet. All times are the database's, in microseconds."""

from holdfast.store.database import NOW, Tx

TASK_PREFIX = "task_embed_"
"""The id of the task that embeds the documents of an account is this, and the account."""
_NO_TASK = (
    "NOT EXISTS (SELECT 1 FROM tasks t WHERE t.account_id = u.account_id"
    f" AND t.task_id = '{TASK_PREFIX}' || u.account_id AND t.status IN ('pending', 'running'))"
)


def add(tx: Tx, owner_id: str) -> None:
    """Register an owner with new documents. The caller has locked the owner by `documents.change`."""
    tx.execute(
        f"INSERT INTO unembedded (account_id, owner_id, due_at) VALUES (?, ?, {NOW}) ON CONFLICT DO NOTHING",
        (tx.account, owner_id),
    )


def delete(tx: Tx, owner_id: str) -> None:
    tx.execute("DELETE FROM unembedded WHERE account_id = ? AND owner_id = ?", (tx.account, owner_id))


def page(tx: Tx, *, after: str | None, limit: int) -> list[str]:
    """List owners of the account. Documents of a deleted session belong to `documents.NOBODY`."""
    condition, params = ("TRUE", ()) if after is None else ("owner_id > ?", (after,))
    rows = tx.all(
        f"SELECT owner_id FROM unembedded WHERE account_id = ? AND {condition} ORDER BY owner_id LIMIT ?",
        (tx.account, *params, limit),
    )
    return [row[0] for row in rows]


def postpone_all(tx: Tx, wait: int) -> None:
    """Embed the documents of the account after `wait` microseconds."""
    tx.execute(f"UPDATE unembedded SET due_at = {NOW} + ? WHERE account_id = ?", (wait, tx.account))


def list_due_accounts(tx: Tx, limit: int) -> list[str]:
    """List accounts that have documents to embed now, and no task that does so."""
    rows = tx.all(
        f"SELECT DISTINCT account_id FROM (SELECT u.account_id FROM unembedded u WHERE u.due_at <= {NOW}"
        f" AND {_NO_TASK} ORDER BY u.due_at LIMIT ?) AS due ORDER BY account_id",
        (limit,),
    )
    return [row[0] for row in rows]


def micros_until_due(tx: Tx) -> int | None:
    """The time until an owner of any account is due whose documents no task embeds. Negative if it is overdue."""
    row = tx.one(f"SELECT u.due_at - {NOW} FROM unembedded u WHERE {_NO_TASK} ORDER BY u.due_at LIMIT 1")
    return row[0] if row else None


def count(tx: Tx, account: str | None, owner_id: str | None) -> int:
    """Count the owners whose documents are embedded now: one of an account, all of it, or all of all accounts.

    Without those of an account whose task waits after an error, for example because a model is unavailable.
    """
    condition, params = "TRUE", list[str]()
    if account is not None:
        condition, params = "u.account_id = ?", [account]
    if account is not None and owner_id is not None:
        condition, params = f"{condition} AND u.owner_id = ?", [account, owner_id]
    waits = (
        "EXISTS (SELECT 1 FROM tasks t WHERE t.account_id = u.account_id"
        f" AND t.task_id = '{TASK_PREFIX}' || u.account_id AND t.failures > 0)"
    )
    row = tx.one(f"SELECT COUNT(*) FROM unembedded u WHERE u.due_at <= {NOW} AND {condition} AND NOT {waits}", params)
    return int(row[0]) if row else 0
