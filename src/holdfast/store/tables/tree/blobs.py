"""The bytes of files, by their hash. An account stores the same bytes once, in chunks of bounded size."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from holdfast.store.database import NOW, Tx

CHUNK_BYTES = 1024 * 1024
KEY_CHARS = 64
MIN_AGE_MICROS = 86_400_000_000
"""Bytes that nothing refers to are deleted after a day: a running task may still need them."""
_OF_BLOB = "account_id = ? AND hash = ?"
_UNUSED = (
    "NOT EXISTS (SELECT 1 FROM contents c WHERE c.account_id = b.account_id AND c.blob = b.hash)"
    " AND NOT EXISTS (SELECT 1 FROM contents c WHERE c.account_id = b.account_id AND c.text_blob = b.hash)"
    " AND NOT EXISTS (SELECT 1 FROM uploads u WHERE u.account_id = b.account_id AND u.hash = b.hash)"
)


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def insert(tx: Tx, data: bytes) -> str:
    """Store bytes, unless the account has them already. Return their hash."""
    digest = hash_of(data)
    if register(tx, digest, len(data)):
        for number, start in enumerate(range(0, len(data), CHUNK_BYTES)):
            insert_chunk(tx, digest, number, data[start : start + CHUNK_BYTES])
    return digest


def insert_all(tx: Tx, found: Iterable[bytes]) -> None:
    """Store the bytes of several files, in the order of their hashes: so transactions cannot deadlock.

    A transaction that stores several blobs does so at once, after it has locked its roots, and before it changes the
    documents of any owner.
    """
    for _, data in sorted({hash_of(data): data for data in found}.items()):
        insert(tx, data)


def register(tx: Tx, digest: str, size: int) -> bool:
    """Record that the account has bytes with this hash. Return whether they are new: then their chunks must follow."""
    insertion = f"INSERT INTO file_blobs (account_id, hash, size, created_at) VALUES (?, ?, ?, {NOW})"
    params = (tx.account, digest, size)
    if tx.one(f"{insertion} ON CONFLICT DO NOTHING RETURNING 1", params) is not None:
        return True
    # A blob that exists becomes younger, so that it is not deleted as unused before something refers to it.
    update = f"UPDATE file_blobs SET created_at = {NOW} WHERE {_OF_BLOB} RETURNING 1"
    if tx.one(update, (tx.account, digest)) is not None:
        return False
    tx.execute(insertion, params)  # it was deleted meanwhile
    return True


def insert_chunk(tx: Tx, digest: str, number: int, data: bytes) -> None:
    tx.execute(
        "INSERT INTO file_chunks (account_id, hash, number, data) VALUES (?, ?, ?, ?)",
        (tx.account, digest, number, data),
    )


def temporary_key(name: str) -> str:
    """Return the key of chunks whose hash is not known yet. It is as long as a hash: SQLite replaces it in place."""
    return name[:KEY_CHARS].ljust(KEY_CHARS, "-")


def adopt_chunks(tx: Tx, key: str, digest: str, size: int) -> None:
    """Give chunks with a temporary key their hash. If the account has these bytes already, the chunks are dropped."""
    if register(tx, digest, size):
        tx.execute(f"UPDATE file_chunks SET hash = ? WHERE {_OF_BLOB}", (digest, tx.account, key))
    else:
        delete_chunks(tx, key)


def delete_chunks(tx: Tx, key: str) -> None:
    """Delete the chunks of a temporary key."""
    tx.execute(f"DELETE FROM file_chunks WHERE {_OF_BLOB}", (tx.account, key))


def delete_chunks_named(tx: Tx, prefix: str) -> None:
    """Delete the chunks of all temporary keys that begin with a prefix."""
    tx.execute(
        "DELETE FROM file_chunks WHERE account_id = ? AND hash >= ? AND hash < ?",
        (tx.account, prefix, f"{prefix}\U0010ffff"),
    )


def read(tx: Tx, digest: str) -> bytes:
    """Return all bytes of a blob."""
    return b"".join(read_chunks(tx, digest))


def read_chunks(tx: Tx, digest: str, first: int = 0) -> Iterator[bytes]:
    """Yield the chunks of a blob from a number on, one at a time."""
    number = first
    while row := tx.one(f"SELECT data FROM file_chunks WHERE {_OF_BLOB} AND number = ?", (tx.account, digest, number)):
        yield bytes(row[0])
        number += 1


def read_range(tx: Tx, digest: str, offset: int, length: int) -> bytes:
    """Return some bytes of a blob."""
    skip = offset % CHUNK_BYTES
    found = b""
    for chunk in read_chunks(tx, digest, offset // CHUNK_BYTES):
        found += chunk
        if len(found) >= skip + length:
            break
    return found[skip : skip + length]


def read_many(tx: Tx, hashes: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of some blobs of one chunk each, by their hashes."""
    marks = ", ".join("?" * len(hashes))
    rows = tx.all(
        f"SELECT hash, data FROM file_chunks WHERE account_id = ? AND hash IN ({marks}) AND number = 0",
        (tx.account, *hashes),
    )
    return {digest: bytes(data) for digest, data in rows}


def size_of(tx: Tx, digest: str) -> int | None:
    row = tx.one(f"SELECT size FROM file_blobs WHERE {_OF_BLOB}", (tx.account, digest))
    return None if row is None else int(row[0])


def count_unused(tx: Tx) -> int:
    """Count the blobs of all accounts that nothing refers to. Only for the operator."""
    return int(tx.all(f"SELECT COUNT(*) FROM file_blobs b WHERE {_UNUSED}")[0][0])


def delete_unused(tx: Tx, age: int, limit: int) -> int:
    """Delete up to `limit` blobs of all accounts that nothing refers to, older than `age` in microseconds.

    Return how many.
    """
    # A blob that is locked is used again. To wait for it could be a deadlock.
    skip = f"{tx.dialect.lock_row} OF b SKIP LOCKED" if tx.dialect.lock_row else ""
    rows = tx.all(
        "DELETE FROM file_blobs AS d WHERE (d.account_id, d.hash) IN (SELECT b.account_id, b.hash FROM file_blobs b"
        f" WHERE b.created_at <= {NOW} - ? AND {_UNUSED} LIMIT ?{skip}) AND d.created_at <= {NOW} - ?"
        " RETURNING account_id, hash",
        (age, limit, age),
    )
    for account, digest in rows:
        tx.execute(f"DELETE FROM file_chunks WHERE {_OF_BLOB}", (account, digest))
    return len(rows)
