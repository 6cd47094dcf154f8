"""The bytes of a pack are stored as blobs, in short transactions, before its nodes are inserted.

A crash leaves blobs that nothing refers to. They are deleted after a day, as those of an upload that nobody used.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from holdfast.engine.gate.ids import Ids
from holdfast.engine.resources.packs.contents import PackBlob, refuse
from holdfast.errors import ConflictError, short_repr
from holdfast.model.identity import Principal
from holdfast.store.database import Database, Tx, raise_if_cancelled
from holdfast.store.tables.tree import blobs, uploads
from holdfast.store.tables.tree.uploads import Upload

R = TypeVar("R")
MAX_SLICE_BYTES = 2 * blobs.CHUNK_BYTES
MAX_SLICE_BLOBS = 200


class StoredBlob(msgspec.Struct, frozen=True):
    sha256: str
    size: int


class BlobStore:
    """Stores the bytes of one pack. Small ones share a transaction, of a large one each chunk has its own."""

    def __init__(self, db: Database, principal: Principal, ids: Ids) -> None:
        self._db = db
        self._principal = principal
        self._ids = ids
        self._slice: list[bytes] = []
        self._slice_bytes = 0

    def store(self, found: Iterable[PackBlob]) -> dict[str, StoredBlob]:
        """Store bytes, and check their hashes. Return them by their names in the archive."""
        stored: dict[str, StoredBlob] = {}
        for blob in found:
            raise_if_cancelled()
            stored[blob.name] = self._store_small(blob) if blob.size <= blobs.CHUNK_BYTES else self._store_large(blob)
        self._flush()
        return stored

    def _store_small(self, blob: PackBlob) -> StoredBlob:
        data = b"".join(blob.read())
        digest = blobs.hash_of(data)
        _require_hash(blob, digest)
        self._slice.append(data)
        self._slice_bytes += len(data)
        if self._slice_bytes >= MAX_SLICE_BYTES or len(self._slice) >= MAX_SLICE_BLOBS:
            self._flush()
        return StoredBlob(digest, len(data))

    def _flush(self) -> None:
        held, self._slice, self._slice_bytes = self._slice, [], 0
        if held:
            self._write(lambda tx: blobs.insert_all(tx, held))

    def _store_large(self, blob: PackBlob) -> StoredBlob:
        """Store the chunks as an upload, which expires if this process is killed."""
        user = self._principal.internal_id
        upload_id = self._ids.new("upload")
        self._write(lambda tx: uploads.insert(tx, upload_id, user, "pack"))
        digest, pending = hashlib.sha256(), b""
        try:
            for piece in blob.read():
                raise_if_cancelled()
                digest.update(piece)
                pending += piece
                while len(pending) >= blobs.CHUNK_BYTES:
                    self._append(upload_id, pending[: blobs.CHUNK_BYTES])
                    pending = pending[blobs.CHUNK_BYTES :]
            if pending:
                self._append(upload_id, pending)
            _require_hash(blob, digest.hexdigest())
        except BaseException:
            self._write(lambda tx: uploads.expire(tx, upload_id))
            raise

        def complete(tx: Tx) -> None:
            tx.allow_long_statements()
            uploads.complete(tx, self._require(tx, upload_id), digest.hexdigest())

        self._write(complete)
        return StoredBlob(digest.hexdigest(), blob.size)

    def _append(self, upload_id: str, chunk: bytes) -> None:
        def append(tx: Tx) -> None:
            uploads.append(tx, self._require(tx, upload_id), chunk)

        self._write(append)

    def _require(self, tx: Tx, upload_id: str) -> Upload:
        upload = uploads.find(tx, upload_id, self._principal.internal_id)
        if upload is None:
            raise ConflictError("the import took longer than uploads are kept; nothing was imported, try again")
        return upload

    def _write(self, transaction: Callable[[Tx], R]) -> R:
        return self._db.write(self._principal.account_id, transaction)


def _require_hash(blob: PackBlob, digest: str) -> None:
    if blob.sha256 is not None and blob.sha256 != digest:
        raise refuse(f"{short_repr(blob.name)} has other bytes than its manifest says; nothing was imported")
