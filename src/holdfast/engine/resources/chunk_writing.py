"""Bytes of any length are stored chunk by chunk, each in a transaction of its own."""

import hashlib
from collections.abc import Iterable

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.tree import blobs


def require_held(tx: Tx, claimed: ClaimedTask) -> None:
    """Raise an error if the task was cancelled, or if another worker has it."""
    if not tasks.is_held(tx, claimed.claim):
        raise LeaseLostError


def store_bytes(claimed: ClaimedTask, name: str, data: Iterable[bytes]) -> str:
    """Store bytes, unless the account has them already, and return their hash.

    Until all are there, their chunks have a key made of `name`. A restarted task begins again.
    """
    key = blobs.temporary_key(name)
    claimed.write(lambda tx, _context: _begin(tx, claimed, key))
    digest, size, number, pending = hashlib.sha256(), 0, 0, b""
    for piece in data:
        digest.update(piece)
        size += len(piece)
        pending += piece
        while len(pending) >= blobs.CHUNK_BYTES:
            _write_chunk(claimed, key, number, pending[: blobs.CHUNK_BYTES])
            pending, number = pending[blobs.CHUNK_BYTES :], number + 1
    if pending:
        _write_chunk(claimed, key, number, pending)
    claimed.write(lambda tx, _context: _finish(tx, claimed, key, digest.hexdigest(), size))
    return digest.hexdigest()


def _begin(tx: Tx, claimed: ClaimedTask, key: str) -> None:
    require_held(tx, claimed)
    blobs.delete_chunks(tx, key)


def _write_chunk(claimed: ClaimedTask, key: str, number: int, chunk: bytes) -> None:
    def write(tx: Tx, _context: CallContext) -> None:
        require_held(tx, claimed)
        blobs.insert_chunk(tx, key, number, chunk)

    claimed.write(write)


def _finish(tx: Tx, claimed: ClaimedTask, key: str, digest: str, size: int) -> None:
    require_held(tx, claimed)
    blobs.adopt_chunks(tx, key, digest, size)
