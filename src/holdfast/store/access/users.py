"""Users of an account and their API keys. Only the id and the hash of a key are stored."""

import msgspec

from holdfast.model.identity import Key, TenantRole, User
from holdfast.store.access.list_filter import EVERY_ROW, ListFilter
from holdfast.store.database import Tx
from holdfast.store.timestamps import from_micros

_NOT_EXPIRED = "(expires_at IS NULL OR expires_at > ?)"
_INTERNAL_ID = (
    "COALESCE((SELECT i.internal_id FROM user_ids i WHERE i.account_id = u.account_id AND i.user_id = u.user_id"
    " AND i.removed_at IS NULL), u.user_id)"
)


class StoredKey(msgspec.Struct, frozen=True):
    user_id: str
    internal_id: str
    role: TenantRole
    hash: str
    expires_at: int | None
    last_used_at: int | None


def insert(tx: Tx, account_id: str, user_id: str, role: TenantRole, now: int) -> bool:
    """Return False if the user already exists."""
    row = tx.one(
        "INSERT INTO users (account_id, user_id, role, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        " RETURNING 1",
        (account_id, user_id, role, now),
    )
    return row is not None


def find(tx: Tx, user_id: str, now: int, *, lock: bool = False) -> User | None:
    """Find a user, with the number of keys that are valid at `now`.

    With `lock`, no other transaction changes the user or their keys until this one ends.
    """
    if lock and tx.dialect.lock_row:
        key = (tx.account, user_id)
        tx.one(f"SELECT 1 FROM users WHERE account_id = ? AND user_id = ?{tx.dialect.lock_row}", key)
    return next(iter(_select_users(tx, now, user_id)), None)


def find_role(tx: Tx, user_id: str) -> TenantRole | None:
    row = tx.one("SELECT role FROM users WHERE account_id = ? AND user_id = ?", (tx.account, user_id))
    return None if row is None else row[0]


def is_possible(tx: Tx, user_id: str) -> bool:
    """Whether a user of this name can call: it exists, or the account has no users, so that names are not checked."""
    known = "SELECT 1 FROM users WHERE account_id = ?"
    row = tx.one(f"{known} AND user_id = ?", (tx.account, user_id))
    return row is not None or tx.one(f"{known} LIMIT 1", (tx.account,)) is None


def list_users(tx: Tx, now: int, wanted: ListFilter = EVERY_ROW) -> list[User]:
    """List users of the account by id, each with the number of keys that are valid at `now`."""
    return _select_users(tx, now, wanted=wanted)


def _select_users(tx: Tx, now: int, user_id: str | None = None, wanted: ListFilter = EVERY_ROW) -> list[User]:
    where, params = wanted.conditions("u.user_id", "u.role")
    if user_id is not None:
        where, params = f"{where} AND u.user_id = ?", [*params, user_id]
    rows = tx.all(
        f"SELECT u.user_id, u.role, u.created_at, {_INTERNAL_ID},"
        f" (SELECT COUNT(*) FROM keys WHERE account_id = u.account_id AND user_id = u.user_id AND {_NOT_EXPIRED})"
        f" FROM users u WHERE u.account_id = ?{where}"
        " ORDER BY u.user_id LIMIT ? OFFSET ?",
        (now, tx.account, *params, *wanted.page_params()),
    )
    return [
        User(
            account_id=tx.account,
            user_id=row[0],
            role=row[1],
            created_at=from_micros(row[2]),
            internal_id=row[3],
            key_count=row[4],
        )
        for row in rows
    ]


def set_role(tx: Tx, user_id: str, role: TenantRole) -> None:
    tx.execute("UPDATE users SET role = ? WHERE account_id = ? AND user_id = ?", (role, tx.account, user_id))


def delete(tx: Tx, user_id: str) -> None:
    delete_keys(tx, user_id)
    tx.execute("DELETE FROM users WHERE account_id = ? AND user_id = ?", (tx.account, user_id))


def insert_key(tx: Tx, account_id: str, key_id: str, user_id: str, hash: str, now: int, expires_at: int | None) -> None:
    tx.execute(
        "INSERT INTO keys (account_id, key_id, user_id, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
        (account_id, key_id, user_id, hash, now, expires_at),
    )


def find_key(tx: Tx, key_id: str) -> StoredKey | None:
    row = tx.one(
        f"SELECT k.user_id, {_INTERNAL_ID}, u.role, k.hash, k.expires_at, k.last_used_at FROM keys k"
        " JOIN users u ON u.account_id = k.account_id AND u.user_id = k.user_id"
        " WHERE k.account_id = ? AND k.key_id = ?",
        (tx.account, key_id),
    )
    return StoredKey(*row) if row else None


def list_keys(tx: Tx, user_id: str) -> list[Key]:
    """List a user's keys, oldest first."""
    rows = tx.all(
        "SELECT key_id, created_at, expires_at, last_used_at FROM keys WHERE account_id = ? AND user_id = ?"
        " ORDER BY created_at, key_id",
        (tx.account, user_id),
    )
    return [
        Key(
            key_id=row[0],
            user_id=user_id,
            created_at=from_micros(row[1]),
            expires_at=None if row[2] is None else from_micros(row[2]),
            last_used_at=None if row[3] is None else from_micros(row[3]),
        )
        for row in rows
    ]


def touch_key(tx: Tx, key_id: str, now: int) -> None:
    """Record that a key was used."""
    tx.execute("UPDATE keys SET last_used_at = ? WHERE account_id = ? AND key_id = ?", (now, tx.account, key_id))


def delete_key(tx: Tx, key_id: str) -> None:
    tx.execute("DELETE FROM keys WHERE account_id = ? AND key_id = ?", (tx.account, key_id))


def delete_keys(tx: Tx, user_id: str) -> None:
    tx.execute("DELETE FROM keys WHERE account_id = ? AND user_id = ?", (tx.account, user_id))
