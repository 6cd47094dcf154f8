"""Accounts: the tenants."""

from holdfast.model.identity import Account
from holdfast.store.database import Tx
from holdfast.store.timestamps import from_micros

_TABLES = (
    "calls",
    "watches",
    "tasks",
    "steps",
    "archives",
    "changes",
    "keys",
    "users",
    "usages",
    "tool_results",
    "blobs",
    "appends",
    "messages",
    "lineage",
    "sessions",
    "audit",
    "accounts",
)
"""Everything an account has, in an order in which it can go."""


def exists(tx: Tx, account_id: str) -> bool:
    return tx.one("SELECT 1 FROM accounts WHERE account_id = ?", (account_id,)) is not None


def lock(tx: Tx, account_id: str) -> bool:
    """Let no other transaction that locks this account run until this one ends; whether there is such an account."""
    return tx.one(f"SELECT 1 FROM accounts WHERE account_id = ?{tx.dialect.lock_row}", (account_id,)) is not None


def insert(tx: Tx, account_id: str, now: int) -> bool:
    """Whether the name was free."""
    row = tx.one(
        "INSERT INTO accounts (account_id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1",
        (account_id, now),
    )
    return row is not None


def every(tx: Tx) -> list[Account]:
    """All accounts, for the operator."""
    rows = tx.all(
        "SELECT a.account_id, a.created_at, (SELECT COUNT(*) FROM users WHERE account_id = a.account_id)"
        " FROM accounts a ORDER BY a.account_id"
    )
    return [
        Account(account_id=account_id, created_at=from_micros(created_at), user_count=users)
        for account_id, created_at, users in rows
    ]


def delete(tx: Tx, account_id: str) -> None:
    """Erase an account and everything it has."""
    tx.execute(tx.dialect.delete_all_text, (account_id,))
    for table in _TABLES:
        tx.execute(f"DELETE FROM {table} WHERE account_id = ?", (account_id,))
