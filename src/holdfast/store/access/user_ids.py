"""The internal ids of users. It is the user's name, until the user is removed: then the name gets another id."""

from holdfast.store.database import Tx

_CURRENT = "account_id = ? AND user_id = ? AND removed_at IS NULL"


def current(tx: Tx, user_id: str) -> str:
    """Return the internal id of the user who has a name now, or will have it next."""
    row = tx.one(f"SELECT internal_id FROM user_ids WHERE {_CURRENT}", (tx.account, user_id))
    return str(row[0]) if row else user_id


def retire(tx: Tx, user_id: str, new_id: str, now: int) -> None:
    """Give a name the internal id `new_id`. The id that it had belongs to a removed user from now on."""
    _set_removed(tx, current(tx, user_id), user_id, now)
    tx.execute(
        "INSERT INTO user_ids (account_id, internal_id, user_id) VALUES (?, ?, ?)", (tx.account, new_id, user_id)
    )


def restore(tx: Tx, internal_id: str, user_id: str, now: int) -> bool:
    """Give a name the internal id of a removed user. Return False if no removed user had it."""
    removed = tx.one(
        "SELECT 1 FROM user_ids WHERE account_id = ? AND internal_id = ? AND removed_at IS NOT NULL",
        (tx.account, internal_id),
    )
    if removed is None:
        return False
    _set_removed(tx, current(tx, user_id), user_id, now)
    tx.execute(
        "UPDATE user_ids SET user_id = ?, removed_at = NULL WHERE account_id = ? AND internal_id = ?",
        (user_id, tx.account, internal_id),
    )
    return True


def _set_removed(tx: Tx, internal_id: str, user_id: str, now: int) -> None:
    tx.execute(
        "INSERT INTO user_ids (account_id, internal_id, user_id, removed_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (account_id, internal_id) DO UPDATE SET removed_at = excluded.removed_at",
        (tx.account, internal_id, user_id, now),
    )
