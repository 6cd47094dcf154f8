"""A search for damage in stored files: bytes that are missing or changed, and bytes that nothing refers to."""

import hashlib
from collections.abc import Iterator
from functools import partial

from holdfast.store.damage import Damage, Progress
from holdfast.store.database import EVERY_ACCOUNT, Database, Row, Tx
from holdfast.store.tables.tree import blobs, nodes

SLICE_BLOBS = 100
SLICE_DELETED = 200
_MISSING = (
    "SELECT c.account_id, n.root, n.path, c.version FROM contents c"
    " JOIN nodes n ON n.account_id = c.account_id AND n.node_id = c.node_id"
    " WHERE (c.blob IS NOT NULL AND NOT EXISTS"
    " (SELECT 1 FROM file_blobs b WHERE b.account_id = c.account_id AND b.hash = c.blob))"
    " OR (c.text_blob IS NOT NULL AND NOT EXISTS"
    " (SELECT 1 FROM file_blobs b WHERE b.account_id = c.account_id AND b.hash = c.text_blob)) LIMIT ?"
)


def find_in_files(database: Database, progress: Progress, max_rows: int | None = None) -> Iterator[Damage]:
    """Find files whose bytes are missing or changed; with `max_rows`, check about that many blobs."""
    for account, root, path, version in database.read(EVERY_ACCOUNT, lambda tx: tx.all(_MISSING, (SLICE_BLOBS,))):
        yield Damage(table="files", problem=f"{account}: the bytes of {root}/{path}, version {version}, are missing")
    total = int(database.read(EVERY_ACCOUNT, lambda tx: tx.all("SELECT COUNT(*) FROM file_blobs"))[0][0])
    after, checked = ("", ""), 0
    while max_rows is None or checked < max_rows:
        found = database.read(EVERY_ACCOUNT, partial(_check_slice, after=after))
        if not found:
            return
        for (account, digest), problem in found:
            if problem:
                yield Damage(table="files", problem=f"{account}: the bytes with the hash {digest} {problem}")
        checked += len(found)
        progress(checked, max(total, checked), "files")
        after = found[-1][0]


def _check_slice(tx: Tx, after: tuple[str, str]) -> list[tuple[tuple[str, str], str | None]]:
    rows = tx.all(
        "SELECT account_id, hash, size FROM file_blobs WHERE (account_id, hash) > (?, ?)"
        " ORDER BY account_id, hash LIMIT ?",
        (*after, SLICE_BLOBS),
    )
    return [((account, digest), _problem(tx, account, digest, size)) for account, digest, size in rows]


def _problem(tx: Tx, account: str, digest: str, size: int) -> str | None:
    hashed, length, number = hashlib.sha256(), 0, 0
    while row := _chunk(tx, account, digest, number):
        hashed.update(row[0])
        length += len(row[0])
        number += 1
    if (hashed.hexdigest(), length) == (digest, size):
        return None
    return f"are damaged: {length} of {size} bytes are there" if length != size else "are damaged"


def _chunk(tx: Tx, account: str, digest: str, number: int) -> Row | None:
    return tx.one(
        "SELECT data FROM file_chunks WHERE account_id = ? AND hash = ? AND number = ?", (account, digest, number)
    )


def count_unused(database: Database) -> int:
    """Count the blobs that nothing refers to."""
    return database.read(EVERY_ACCOUNT, blobs.count_unused)


def delete_unused(database: Database) -> int:
    """Delete what tasks that are over have staged, and all blobs that nothing refers to. Return how many blobs."""
    while database.write(EVERY_ACCOUNT, lambda tx: nodes.delete_staged(tx, SLICE_DELETED)):
        pass
    deleted = 0
    while count := database.write(EVERY_ACCOUNT, lambda tx: blobs.delete_unused(tx, 0, SLICE_DELETED)):
        deleted += count
    return deleted
