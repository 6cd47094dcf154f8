"""Uploads in parts: retries, limits, expiry, and the bytes that they leave."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.transfers.uploads import require_complete
from holdfast.errors import (
    ConflictError,
    FailedPreconditionError,
    HoldfastError,
    PermissionDeniedError,
    ResourceExhaustedError,
    TooLargeError,
)
from holdfast.model.identity import Principal
from holdfast.ops.tree.uploads import PART_BYTES, AppendUpload, CancelUpload, FinishUpload, StartUpload
from holdfast.store.database import EVERY_ACCOUNT, Database
from holdfast.store.tables.tree import blobs, uploads

ALICE = Principal("acme", "alice", "root", internal_id="alice")
WHOLE = bytes(range(256)) * (PART_BYTES // 256)


def start(engine: Engine, *parts: bytes, name: str = "a.bin", principal: Principal = ALICE) -> str:
    upload_id: str = engine.call(principal, StartUpload(name=name)).upload_id
    for number, data in enumerate(parts):
        engine.call(principal, AppendUpload(upload_id=upload_id, number=number, data=data))
    return upload_id


def append_error(engine: Engine, upload_id: str, number: int, data: bytes, error: type[HoldfastError]) -> str:
    with pytest.raises(error) as raised:
        engine.call(ALICE, AppendUpload(upload_id=upload_id, number=number, data=data))
    return raised.value.message


def count(database: Database, table: str) -> int:
    return int(database.read(EVERY_ACCOUNT, lambda tx: tx.all(f"SELECT COUNT(*) FROM {table}"))[0][0])


def expire_all(engine: Engine) -> None:
    engine.db.write(EVERY_ACCOUNT, lambda tx: tx.execute("UPDATE uploads SET expires_at = 1"))
    engine.delete_expired()


def test_a_part_can_be_sent_again_but_not_changed(database: Database) -> None:
    engine = Engine(database)
    upload_id = start(engine, WHOLE)
    again = engine.call(ALICE, AppendUpload(upload_id=upload_id, number=0, data=WHOLE))
    assert (again.size, again.parts) == (PART_BYTES, 1)
    assert "other bytes" in append_error(engine, upload_id, 0, WHOLE[::-1], ConflictError)
    assert "part 1 of" in append_error(engine, upload_id, 2, b"x", ConflictError)
    engine.call(ALICE, AppendUpload(upload_id=upload_id, number=1, data=b"end"))
    assert "was the last one" in append_error(engine, upload_id, 2, b"x", ConflictError)
    finished = engine.call(ALICE, FinishUpload(upload_id=upload_id))
    assert finished.sha256 == hashlib.sha256(WHOLE + b"end").hexdigest()
    assert engine.call(ALICE, FinishUpload(upload_id=upload_id)) == finished
    assert "is complete" in append_error(engine, upload_id, 2, b"x", FailedPreconditionError)
    upload, digest = database.read("acme", lambda tx: require_complete(tx, ALICE, upload_id))
    assert (upload.name, digest) == ("a.bin", finished.sha256)
    assert database.read("acme", lambda tx: blobs.read(tx, digest)) == WHOLE + b"end"


def test_the_same_bytes_are_stored_once(database: Database) -> None:
    engine = Engine(database)
    for name in ("a.bin", "b.bin"):
        engine.call(ALICE, FinishUpload(upload_id=start(engine, WHOLE, b"end", name=name)))
    assert (count(database, "file_chunks"), count(database, "file_blobs")) == (2, 1)


def test_an_incomplete_or_unknown_upload_cannot_be_used(database: Database) -> None:
    engine = Engine(database)
    upload_id = start(engine, b"x")
    with pytest.raises(FailedPreconditionError, match="not complete"):
        database.read("acme", lambda tx: require_complete(tx, ALICE, upload_id))
    bob = Principal("acme", "bob", "root", internal_id="bob")
    for principal, named in ((ALICE, "upload_0"), (bob, upload_id), (ALICE, "../../etc/passwd")):
        with pytest.raises(PermissionDeniedError, match="upload the file again") as raised:
            database.read("acme", lambda tx, who=principal, it=named: require_complete(tx, who, it))  # type: ignore[misc]
        assert raised.value.status == 403


def test_the_size_and_the_number_of_open_uploads_are_limited(database: Database) -> None:
    settings = Settings(max_upload_bytes=PART_BYTES + 2, max_open_uploads=2, max_open_upload_bytes=2 * PART_BYTES)
    engine = Engine(database, settings)
    first = start(engine, WHOLE)
    assert "more than 1,048,578 bytes" in append_error(engine, first, 1, b"abc", TooLargeError)
    engine.call(ALICE, AppendUpload(upload_id=first, number=1, data=b"ab"))
    second = start(engine)
    with pytest.raises(ResourceExhaustedError, match="2 uploads of this user"):
        start(engine)
    start(engine, principal=Principal("acme", "bob", "root"))
    engine.call(ALICE, CancelUpload(upload_id=second))
    third = start(engine, WHOLE)
    engine.call(ALICE, FinishUpload(upload_id=first))
    engine.call(ALICE, AppendUpload(upload_id=third, number=1, data=b"ab"))
    engine.call(ALICE, FinishUpload(upload_id=third))
    assert start(engine).startswith("upload_")


def test_expired_uploads_are_deleted_with_their_chunks(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_CHUNKS_AT_ONCE", 2)
    engine = Engine(database)
    unfinished, finished = start(engine, *[WHOLE] * 5), start(engine, b"kept")
    engine.call(ALICE, FinishUpload(upload_id=finished))
    engine.delete_expired()
    assert count(database, "uploads") == 2
    expire_all(engine)
    assert (count(database, "uploads"), count(database, "file_chunks"), count(database, "file_blobs")) == (0, 1, 1)
    for upload_id in (unfinished, finished):
        with pytest.raises(PermissionDeniedError):
            engine.call(ALICE, FinishUpload(upload_id=upload_id))


def test_concurrent_calls_of_one_upload_store_each_part_once(database: Database) -> None:
    engine = Engine(database)
    upload_id = start(engine)

    def call(op: Any) -> Any:
        return engine.call(ALICE, op)

    with ThreadPoolExecutor(8) as threads:
        for number in range(3):
            sent = [AppendUpload(upload_id=upload_id, number=number, data=WHOLE)] * 4
            assert {each.size for each in threads.map(call, sent)} == {(number + 1) * PART_BYTES}
        finished = list(threads.map(call, [FinishUpload(upload_id=upload_id)] * 4))
    assert {each.sha256 for each in finished} == {hashlib.sha256(WHOLE * 3).hexdigest()}
    assert count(database, "file_chunks") == 3
