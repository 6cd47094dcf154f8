"""The results of appends that came with an idempotency key, so that a retry gets the first one's."""

import msgspec

from holdfast.model.messages import Appended
from holdfast.store.database import Tx

_decode = msgspec.json.Decoder(Appended).decode


def find(tx: Tx, log_id: int, key: str) -> tuple[str, Appended] | None:
    """The fingerprint and the result of the append that used this key."""
    row = tx.one(
        "SELECT fingerprint, result FROM appends WHERE account_id = ? AND log_id = ? AND key = ?",
        (tx.account, log_id, key),
    )
    return (row[0], _decode(row[1])) if row else None


def insert(tx: Tx, log_id: int, key: str, fingerprint: str, result: Appended, now: int) -> None:
    tx.execute(
        "INSERT INTO appends (account_id, log_id, key, fingerprint, result, at) VALUES (?, ?, ?, ?, ?, ?)",
        (tx.account, log_id, key, fingerprint, msgspec.json.encode(result).decode(), now),
    )


def delete(tx: Tx, log_id: int) -> None:
    tx.execute("DELETE FROM appends WHERE account_id = ? AND log_id = ?", (tx.account, log_id))


def forget_before(tx: Tx, before: int, limit: int) -> int:
    """Drop up to `limit` results that are older than `before`, of all accounts, oldest first; how many there were."""
    rows = tx.all(
        "DELETE FROM appends WHERE (account_id, log_id, key) IN"
        " (SELECT account_id, log_id, key FROM appends WHERE at < ? ORDER BY at LIMIT ?) RETURNING 1",
        (before, limit),
    )
    return len(rows)
