"""Accounts: the tenants."""

from holdfast.model import Account
from holdfast.store.database import Tx
from holdfast.store.moments import from_micros


def exists(tx: Tx, account_id: str) -> bool:
    return tx.one("SELECT 1 FROM accounts WHERE account_id = ?", (account_id,)) is not None


def lock(tx: Tx, account_id: str) -> None:
    """Let no other transaction that locks this account run until this one ends."""
    tx.one(f"SELECT 1 FROM accounts WHERE account_id = ?{tx.dialect.lock_row}", (account_id,))


def insert(tx: Tx, account_id: str, now: int) -> bool:
    """Whether the name was free."""
    row = tx.one(
        "INSERT INTO accounts (account_id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1",
        (account_id, now),
    )
    return row is not None


def every(tx: Tx) -> list[Account]:
    """All accounts, for the operator."""
    rows = tx.all("SELECT account_id, created_at FROM accounts ORDER BY account_id")
    return [Account(account_id, from_micros(created_at)) for account_id, created_at in rows]
