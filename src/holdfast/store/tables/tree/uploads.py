"""Uploads: files that a client sends in parts, to use them in another call. All times are the database's.

Until an upload is complete, its chunks have a key of its own in place of their hash.
"""

from typing import NamedTuple

from holdfast.store.database import NOW, Tx
from holdfast.store.tables.tree import blobs

MICROS_KEPT = 86_400_000_000
"""An upload expires after a day."""
_COLUMNS = "upload_id, user_id, name, size, chunks, hash"
_OF_UPLOAD = "account_id = ? AND upload_id = ?"
_OF_CHUNKS = "account_id = ? AND hash = ?"
_CHUNKS_AT_ONCE = 64
"""How many chunks one transaction deletes. Small, so that other writers do not wait long."""


class Upload(NamedTuple):
    upload_id: str
    user_id: str
    """The internal id of its user."""
    name: str
    size: int
    chunks: int
    hash: str | None
    """The hash of the bytes; None until the upload is complete."""


def key_of(upload_id: str) -> str:
    """Return the key of the chunks of an upload that is not complete.

    >>> key_of("upload_0123456789abcdef0123456789abcdef.md")
    'upload_0123456789abcdef0123456789abcdef-------------------------'
    """
    return blobs.temporary_key(upload_id.partition(".")[0])


def insert(tx: Tx, upload_id: str, user_id: str, name: str) -> None:
    tx.execute(
        "INSERT INTO uploads (account_id, upload_id, user_id, name, size, chunks, expires_at)"
        f" VALUES (?, ?, ?, ?, 0, 0, {NOW} + ?)",
        (tx.account, upload_id, user_id, name, MICROS_KEPT),
    )


def find(tx: Tx, upload_id: str, user_id: str, *, locks: bool = False) -> Upload | None:
    """Find an upload of a user that has not expired. With `locks`, no other transaction changes it until this ends."""
    row = tx.one(
        f"SELECT {_COLUMNS} FROM uploads WHERE {_OF_UPLOAD} AND user_id = ? AND expires_at > {NOW}"
        f"{tx.dialect.lock_row if locks else ''}",
        (tx.account, upload_id, user_id),
    )
    return None if row is None else Upload(*row)


def count_open(tx: Tx, user_id: str) -> tuple[int, int]:
    """Count the uploads of a user that are not complete, and their bytes."""
    row = tx.one(
        "SELECT COUNT(*), CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM uploads"
        f" WHERE account_id = ? AND user_id = ? AND hash IS NULL AND expires_at > {NOW}",
        (tx.account, user_id),
    )
    return (0, 0) if row is None else (int(row[0]), int(row[1]))


def append(tx: Tx, upload: Upload, data: bytes) -> None:
    """Add the next chunk."""
    blobs.insert_chunk(tx, key_of(upload.upload_id), upload.chunks, data)
    tx.execute(
        f"UPDATE uploads SET size = size + ?, chunks = chunks + 1 WHERE {_OF_UPLOAD}",
        (len(data), tx.account, upload.upload_id),
    )


def read_chunk(tx: Tx, upload_id: str, number: int) -> bytes | None:
    """Return a chunk of an upload that is not complete."""
    return next(blobs.read_chunks(tx, key_of(upload_id), number), None)


def complete(tx: Tx, upload: Upload, digest: str) -> None:
    """Give the bytes of an upload their hash. If the account has these bytes already, the chunks are dropped."""
    blobs.adopt_chunks(tx, key_of(upload.upload_id), digest, upload.size)
    tx.execute(f"UPDATE uploads SET hash = ? WHERE {_OF_UPLOAD}", (digest, tx.account, upload.upload_id))


def expire(tx: Tx, upload_id: str) -> None:
    """Let an upload expire now. Its chunks are deleted in the background."""
    tx.execute(f"UPDATE uploads SET expires_at = {NOW} WHERE {_OF_UPLOAD}", (tx.account, upload_id))


def delete_expired(tx: Tx, age: int, limit: int) -> int:
    """Delete the oldest upload of any account that expired `age` microseconds ago, or `limit` of its chunks.

    Return how many rows were deleted. A complete upload leaves its bytes, which others may refer to.
    """
    row = tx.one(
        f"SELECT account_id, upload_id, hash FROM uploads WHERE expires_at <= {NOW} - ? ORDER BY expires_at LIMIT 1"
        f"{tx.dialect.lock_row}",
        (age,),
    )
    if row is None:
        return 0
    account, upload_id, digest = row
    deleted = 0 if digest is not None else _delete_chunks(tx, account, upload_id, min(limit, _CHUNKS_AT_ONCE))
    if deleted == 0:
        tx.execute(f"DELETE FROM uploads WHERE {_OF_UPLOAD}", (account, upload_id))
    return deleted or 1


def _delete_chunks(tx: Tx, account: str, upload_id: str, limit: int) -> int:
    key = key_of(upload_id)
    rows = tx.all(
        f"DELETE FROM file_chunks WHERE {_OF_CHUNKS} AND number IN (SELECT number FROM file_chunks"
        f" WHERE {_OF_CHUNKS} ORDER BY number DESC LIMIT ?) RETURNING 1",
        (account, key, account, key, limit),
    )
    return len(rows)
