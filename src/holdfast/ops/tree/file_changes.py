"""Operations that change stored files and folders, and read their history."""

from typing import Annotated, Literal

import msgspec

from holdfast.model.tree.file_changes import (
    BatchWritten,
    FileCopied,
    FileMoved,
    FileRemoved,
    FileRestored,
    FileWritten,
    FolderMade,
    History,
)
from holdfast.ops.addresses import Uri
from holdfast.ops.table import Operation, operation
from holdfast.ops.tree.files import Version

MAX_CONTENT_CHARS = 16_000_000
MAX_BATCH = 100
"""How many files one batch may write."""
WriteMode = Literal["replace", "append", "create"]
Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Tags = Annotated[list[Tag], msgspec.Meta(max_length=100)]
VersionLimit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


@operation("POST /content/write", audit="{uri}")
class WriteFile(Operation[FileWritten], frozen=True, kw_only=True):
    """Write a text file. Missing folders are made. Every write is a version."""

    uri: Uri
    content: Annotated[str, msgspec.Meta(max_length=MAX_CONTENT_CHARS)]
    mode: WriteMode = "replace"
    """`replace` writes the file, new or not; `append` adds to its end; `create` fails if it exists."""
    expected_version: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None
    """Write only if this is the current version; 0 if there is no such file. A server also reads it from `If-Match`."""
    expected_sha256: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    """Write only if the current content has this hash."""
    tags: Tags | None = None
    """Replace the tags of the file."""
    wait: bool = False
    """Return when the file can be searched by its words."""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=86_400)] | None = None
    """The seconds to wait. A server ends the wait before the request times out."""


class BatchOperation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file to write, of a batch."""

    uri: Uri
    content: Annotated[str, msgspec.Meta(max_length=MAX_CONTENT_CHARS)] = ""
    mode: WriteMode = "replace"
    expected_sha256: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    """Write only if the current content has this hash."""


@operation("POST /content/batch-write", audit="{root_uri}")
class WriteFiles(Operation[BatchWritten], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Write several text files below a folder, all or none of them."""

    root_uri: Uri
    """A folder that exists. All files are below it."""
    operations: Annotated[list[BatchOperation], msgspec.Meta(min_length=1, max_length=MAX_BATCH)]
    skip_conflicts: bool = False
    """Leave out files that exist although the mode is `create`, or whose content has another hash than expected."""
    wait: bool = False
    """Return when the files can be searched by their words."""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=86_400)] | None = None
    """The seconds to wait. A server ends the wait before the request times out."""
    defer_processing: bool = False
    """Accepted for published clients: files are always processed after the call, unless it waits."""
    processing_mode: Literal["semantic_and_vectors", "vectors_only"] | None = None
    """Accepted for published clients: both are made."""
    edit_source: Literal["manual", "agent", "compile"] | None = None
    """Accepted for published clients. The author of a version is the user."""


@operation("POST /fs/mkdir", audit="{uri}")
class MakeFolder(Operation[FolderMade], frozen=True, kw_only=True):
    """Make a folder, and the folders above it. One that exists stays as it is."""

    uri: Uri
    description: Annotated[str, msgspec.Meta(max_length=10_000)] = ""


@operation("POST /fs/mv", audit="{from_uri} {to_uri}")
class MoveFile(Operation[FileMoved], frozen=True, kw_only=True):
    """Move or rename a file or a folder, with its history. An existing file at the new address is replaced."""

    from_uri: Uri
    to_uri: Uri


@operation("POST /fs/cp", audit="{from_uri} {to_uri}")
class CopyFile(Operation[FileCopied], frozen=True, kw_only=True):
    """Copy a file, or with `recursive` a folder. The copy begins with one version."""

    from_uri: Uri
    to_uri: Uri
    recursive: bool = False


@operation("DELETE /fs", audit="{uri}")
class RemoveFile(Operation[FileRemoved], frozen=True, kw_only=True):
    """Remove a file, or with `recursive` a folder with its content. `RestoreFile` brings it back."""

    uri: Uri
    recursive: bool = False
    wait: bool = False


@operation("POST /fs/restore", audit="{uri}")
class RestoreFile(Operation[FileRestored], frozen=True, kw_only=True):
    """Restore a version of a file as its newest one, or what was removed last at an address."""

    uri: Uri
    version: Version | None = None


@operation("GET /fs/history", answer="bounded")
class ReadHistory(Operation[History], frozen=True, kw_only=True):
    """List the versions of a file, the newest first, also of one that was removed."""

    uri: Uri
    limit: VersionLimit = 100
    before: Version | None = None
    """List the versions before this one."""
