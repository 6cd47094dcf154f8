"""Results of appends with an idempotency key. A retry with the same key returns the stored result."""

import msgspec

from holdfast.model.messages import Appended
from holdfast.store.database import NOW, Tx

_decode = msgspec.json.Decoder(Appended).decode


def find(tx: Tx, log_id: int, key: str) -> tuple[str, Appended] | None:
    """Find the fingerprint and the result of the append that used this key."""
    row = tx.one(
        "SELECT fingerprint, result FROM appends WHERE account_id = ? AND log_id = ? AND key = ?",
        (tx.account, log_id, key),
    )
    return (row[0], _decode(row[1])) if row else None


def insert(tx: Tx, log_id: int, key: str, fingerprint: str, result: Appended) -> None:
    tx.execute(
        f"INSERT INTO appends (account_id, log_id, key, fingerprint, result, at) VALUES (?, ?, ?, ?, ?, {NOW})",
        (tx.account, log_id, key, fingerprint, msgspec.json.encode(result).decode()),
    )


def delete_older_than(tx: Tx, age: int, limit: int) -> int:
    """Delete up to `limit` results of all accounts that are older than `age` in microseconds, oldest first.

    Return how many.
    """
    rows = tx.all(
        "DELETE FROM appends WHERE (account_id, log_id, key) IN"
        f" (SELECT account_id, log_id, key FROM appends WHERE at < {NOW} - ? ORDER BY at LIMIT ?) RETURNING 1",
        (age, limit),
    )
    return len(rows)
