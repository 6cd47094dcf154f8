"""Operations that upload files in parts, and read the bytes of files."""

from typing import Annotated

import msgspec

from holdfast.model.tree.uploads import FileBytes, TempFile, UploadCancelled, UploadProgress
from holdfast.ops.addresses import Uri
from holdfast.ops.table import Operation, operation
from holdfast.ops.tree.files import Version

PART_BYTES = 1024 * 1024
"""The size of all parts of an upload except the last one, and of the longest read."""
MAX_NAME_CHARS = 255

UploadId = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
UploadName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_CHARS)]
PartNumber = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
PartData = Annotated[
    bytes,
    msgspec.Meta(
        min_length=1,
        max_length=PART_BYTES,
        description="send 1 byte to 1 MiB as base64",
        extra_json_schema={"pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},
    ),
]
ByteOffset = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
ByteLimit = Annotated[int, msgspec.Meta(ge=1, le=PART_BYTES)]


@operation("POST /uploads", audit="{result.upload_id}")
class StartUpload(Operation[UploadProgress], frozen=True, kw_only=True):
    """Begin to upload a file in parts. It expires after a day."""

    name: UploadName
    """The name of the file. The id of the upload gets its extension."""


@operation("PUT /uploads/{upload_id}/parts")
class AppendUpload(Operation[UploadProgress], frozen=True, kw_only=True):
    """Add a part to an upload. Parts come in order, and all but the last one have 1 MiB.

    A part can be sent again: if it is there already, nothing changes.
    """

    upload_id: UploadId
    number: PartNumber
    """The number of the part, counted from 0."""
    data: PartData


@operation("PUT /uploads/{upload_id}", audit="{upload_id}")
class FinishUpload(Operation[TempFile], frozen=True, kw_only=True):
    """Complete an upload. Its id can then be used as `temp_file_id`. Completing it again changes nothing."""

    upload_id: UploadId


@operation("DELETE /uploads/{upload_id}", audit="{upload_id}")
class CancelUpload(Operation[UploadCancelled], frozen=True, kw_only=True):
    """Delete an upload, complete or not."""

    upload_id: UploadId


@operation("GET /content/bytes", role="guest", answer="bounded")
class ReadBytes(Operation[FileBytes], frozen=True, kw_only=True):
    """Read some bytes of a file, as they are stored. A view, such as `messages.jsonl`, has those of its text."""

    uri: Uri
    offset: ByteOffset = 0
    limit: ByteLimit = PART_BYTES
    version: Version | None = None
    """A version of a stored file; the default is the current one."""
