"""Accounts: the tenants."""

from holdfast.model.identity import Account
from holdfast.store.access.list_filter import EVERY_ROW, ListFilter
from holdfast.store.database import Tx
from holdfast.store.timestamps import from_micros

_TABLES = (
    "old_tasks",
    "tasks",
    "steps",
    "tree_roots",
    "calls",
    "watches",
    "archives",
    "quarantine",
    "changes",
    "keys",
    "users",
    "user_ids",
    "share_links",
    "grants",
    "usages",
    "tool_results",
    "blobs",
    "appends",
    "messages",
    "index_owners",
    "vectors",
    "vector_spaces",
    "unembedded",
    "embedded",
    "indexed_vectors",
    "documents",
    "document_uses",
    "skill_uses",
    "resource_watches",
    "relations",
    "unprocessed",
    "uploads",
    "nodes",
    "contents",
    "file_blobs",
    "file_chunks",
    "unindexed",
    "lineage",
    "sessions",
    "audit_heads",
    "audit_unsealed",
    "audit",
    "accounts",
)
"""The tables with rows of an account, in an order that satisfies the foreign keys when rows are deleted.

Tasks are first, and old ones before the others: a worker locks its task before it changes other rows. The head of the
audit is before its lines: a transaction that seals lines locks the head first. The roots of the tree are before what
belongs to them, for the same reason.
"""


_SELECT = (
    "SELECT a.account_id, a.created_at, (SELECT COUNT(*) FROM users WHERE account_id = a.account_id) FROM accounts a"
)


def exists(tx: Tx, account_id: str) -> bool:
    return tx.one("SELECT 1 FROM accounts WHERE account_id = ?", (account_id,)) is not None


def find_creation_time(tx: Tx, account_id: str) -> int | None:
    row = tx.one("SELECT created_at FROM accounts WHERE account_id = ?", (account_id,))
    return None if row is None else int(row[0])


def lock(tx: Tx, account_id: str) -> bool:
    """Lock the account until the transaction ends. Return False if there is no such account."""
    return tx.one(f"SELECT 1 FROM accounts WHERE account_id = ?{tx.dialect.lock_row}", (account_id,)) is not None


def hold(tx: Tx, account_id: str) -> bool:
    """Keep the account from being deleted until the transaction ends. Return False if there is no such account.

    Others may hold it, too. A transaction that locks a session or a user of the account need not hold it.
    """
    share = " FOR SHARE" if tx.dialect.lock_row else ""
    return tx.one(f"SELECT 1 FROM accounts WHERE account_id = ?{share}", (account_id,)) is not None


def insert(tx: Tx, account_id: str, now: int) -> bool:
    """Return False if the account already exists."""
    row = tx.one(
        "INSERT INTO accounts (account_id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1",
        (account_id, now),
    )
    return row is not None


def list_accounts(tx: Tx, wanted: ListFilter = EVERY_ROW) -> list[Account]:
    """List the accounts of all tenants by id. Only for the operator."""
    where, params = wanted.conditions("a.account_id")
    rows = tx.all(
        f"{_SELECT} WHERE TRUE{where} ORDER BY a.account_id LIMIT ? OFFSET ?", (*params, *wanted.page_params())
    )
    return [_account(*row) for row in rows]


def find(tx: Tx) -> Account | None:
    """Find the account of the transaction."""
    row = tx.one(f"{_SELECT} WHERE a.account_id = ?", (tx.account,))
    return _account(*row) if row else None


def _account(account_id: str, created_at: int, users: int) -> Account:
    return Account(account_id=account_id, created_at=from_micros(created_at), user_count=users)


def delete(tx: Tx, account_id: str) -> None:
    """Delete an account and all its data."""
    for table in _TABLES:
        if table == "steps":  # after the tasks, see above
            # Waits for running appends. Otherwise a message that one of them adds now would be left.
            locked = f"SELECT 1 FROM sessions WHERE account_id = ?{tx.dialect.lock_row}"
            tx.one(f"SELECT COUNT(*) FROM ({locked}) AS locked", (account_id,))
        if table == "documents":
            tx.execute(tx.dialect.delete_account_text, (account_id,))
        tx.execute(f"DELETE FROM {table} WHERE account_id = ?", (account_id,))
