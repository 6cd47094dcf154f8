"""Uploads: receiving a file in parts, and completing it under the hash of its bytes."""

import hashlib
import re

import msgspec

from holdfast.engine.gate import access
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.errors import (
    ConflictError,
    FailedPreconditionError,
    PermissionDeniedError,
    ResourceExhaustedError,
    TooLargeError,
    short_repr,
)
from holdfast.model.identity import Principal
from holdfast.model.tree.uploads import TempFile, UploadCancelled, UploadProgress
from holdfast.ops.tree.uploads import PART_BYTES, AppendUpload, CancelUpload, FinishUpload, StartUpload
from holdfast.store.database import Database, Tx, raise_if_cancelled
from holdfast.store.tables.tree import uploads
from holdfast.store.tables.tree.uploads import Upload

_EXTENSION = re.compile(r"[a-z0-9]{1,16}")


class HashedUpload(msgspec.Struct, frozen=True):
    """The hash of the bytes that an upload had when it was read."""

    size: int
    digest: str


def _start(tx: Tx, principal: Principal, op: StartUpload, _checked: None, context: CallContext) -> UploadProgress:
    access.ensure_account(tx, principal, context)
    count, size = uploads.count_open(tx, principal.internal_id)
    settings = context.settings
    if count >= settings.max_open_uploads or size >= settings.max_open_upload_bytes:
        raise ResourceExhaustedError(
            f"{count} uploads of this user with {size:,} bytes are not complete; complete or cancel some of them first"
            f" (at most {settings.max_open_uploads} uploads and {settings.max_open_upload_bytes:,} bytes)",
            limit=settings.max_open_uploads,
        )
    upload_id = _new_id(context, op)
    uploads.insert(tx, upload_id, principal.internal_id, op.name)
    return UploadProgress(upload_id=upload_id, size=0, parts=0)


def _new_id(context: CallContext, op: StartUpload) -> str:
    """Return a new id, with the extension of the file's name.

    A name without a usable extension adds none.
    """
    extension = op.name.rpartition(".")[2].lower() if "." in op.name else ""
    is_usable = _EXTENSION.fullmatch(extension) is not None
    return f"{context.ids.new('upload')}{f'.{extension}' if is_usable else ''}"


def _append(tx: Tx, principal: Principal, op: AppendUpload, _checked: None, context: CallContext) -> UploadProgress:
    upload = require_upload(tx, principal, op.upload_id, locks=True)
    if upload.hash is not None:
        raise FailedPreconditionError(f"{op.upload_id} is complete; begin another upload", resource=op.upload_id)
    if op.number < upload.chunks:
        if uploads.read_chunk(tx, op.upload_id, op.number) != op.data:
            raise ConflictError(
                f"part {op.number} of {op.upload_id} has other bytes; begin another upload", resource=op.upload_id
            )
        return UploadProgress(upload_id=op.upload_id, size=upload.size, parts=upload.chunks)
    if op.number > upload.chunks:
        raise ConflictError(
            f"number: is {op.number}, but part {upload.chunks} of {op.upload_id} is missing; send it first",
            resource=op.upload_id,
        )
    if upload.size != upload.chunks * PART_BYTES:
        raise ConflictError(
            f"number: part {op.number - 1} of {op.upload_id} was the last one: it has less than {PART_BYTES:,} bytes;"
            " begin another upload",
            resource=op.upload_id,
        )
    limit = context.settings.max_upload_bytes
    size = upload.size + len(op.data)
    if size > limit:
        raise TooLargeError(f"{op.upload_id} would have more than {limit:,} bytes; upload a smaller file", limit=limit)
    uploads.append(tx, upload, op.data)
    return UploadProgress(upload_id=op.upload_id, size=size, parts=upload.chunks + 1)


def _hash(resources: EngineResources, principal: Principal, op: FinishUpload, _checked: None) -> HashedUpload | None:
    """Compute the hash of an upload, one chunk at a time, outside any transaction that writes."""
    db, account = resources.db, principal.account_id
    upload = db.read(account, lambda tx: require_upload(tx, principal, op.upload_id))
    if upload.hash is not None:
        return None
    digest, size = hashlib.sha256(), 0
    for number in range(upload.chunks):
        raise_if_cancelled()
        chunk = _read_chunk(db, account, op.upload_id, number)
        if chunk is None:  # another call has completed it meanwhile
            return None
        digest.update(chunk)
        size += len(chunk)
    return HashedUpload(size, digest.hexdigest())


def _read_chunk(db: Database, account: str, upload_id: str, number: int) -> bytes | None:
    return db.read(account, lambda tx: uploads.read_chunk(tx, upload_id, number))


def _finish(
    tx: Tx, principal: Principal, op: FinishUpload, hashed: HashedUpload | None, _context: CallContext
) -> TempFile:
    tx.allow_long_statements()
    upload = require_upload(tx, principal, op.upload_id, locks=True)
    digest = upload.hash
    if digest is None:
        if hashed is None or hashed.size != upload.size:
            raise ConflictError(f"{op.upload_id} got another part meanwhile; complete it again", resource=op.upload_id)
        digest = hashed.digest
        uploads.complete(tx, upload, digest)
    return TempFile(temp_file_id=upload.upload_id, size=upload.size, sha256=digest)


def _cancel(tx: Tx, principal: Principal, op: CancelUpload, _checked: None, _context: CallContext) -> UploadCancelled:
    require_upload(tx, principal, op.upload_id)
    uploads.expire(tx, op.upload_id)
    return UploadCancelled(upload_id=op.upload_id)


def require_upload(tx: Tx, principal: Principal, upload_id: str, *, locks: bool = False) -> Upload:
    """Return an upload of the caller. One of another user is indistinguishable from one that does not exist."""
    upload = uploads.find(tx, upload_id, principal.internal_id, locks=locks)
    if upload is None:
        raise PermissionDeniedError(
            f"{short_repr(upload_id)} is not an upload of {principal.user_id}, or it has expired; upload the file again"
        )
    return upload


def require_complete(tx: Tx, principal: Principal, temp_file_id: str) -> tuple[Upload, str]:
    """Return a complete upload of the caller, and the hash of its bytes."""
    upload = require_upload(tx, principal, temp_file_id)
    if upload.hash is None:
        raise FailedPreconditionError(
            f"{temp_file_id} is not complete; send its last part and complete it", resource=temp_file_id
        )
    return upload, upload.hash


HANDLERS: dict[type, OperationHandler] = {
    StartUpload: OperationHandler(_start, writes=always),
    AppendUpload: OperationHandler(_append, writes=always),
    FinishUpload: OperationHandler(_finish, writes=always, prepare=_hash),
    CancelUpload: OperationHandler(_cancel, writes=always),
}
