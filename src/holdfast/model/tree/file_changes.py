"""The results of changes of stored files."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from holdfast.model.base import WireStruct


class FileWritten(WireStruct, frozen=True, kw_only=True):
    uri: str
    root_uri: str
    """The folder of the file."""
    context_type: Literal["resource", "skill"]
    mode: str
    written_bytes: int
    content_updated: bool
    """False if the file had this content already. Then no version was added."""
    version: int
    """The number of the current version."""
    sha256: str
    semantic_status: Literal["complete", "queued"]
    """Whether its abstract, overview and parts are made."""
    vector_status: Literal["complete", "queued"]
    queue_status: dict[str, Any] | None = None


class BatchWritten(WireStruct, frozen=True, kw_only=True):
    root_uri: str
    results: list[FileWritten]
    """One for each file that was written, in the order of the operations."""
    skipped: list[str]
    """The addresses of operations that were left out because of a conflict."""


class FolderMade(WireStruct, frozen=True, kw_only=True):
    uri: str


class FileMoved(WireStruct, frozen=True, kw_only=True, rename={"from_uri": "from", "to_uri": "to"}):
    from_uri: str
    to_uri: str


class FileCopied(WireStruct, frozen=True, kw_only=True, rename={"from_uri": "from", "to_uri": "to"}):
    operation_id: str
    operation: Literal["copy"] = "copy"
    from_uri: str
    to_uri: str
    recursive: bool
    phase: Literal["completed"] = "completed"
    files_created: int


class MemoryCleanup(WireStruct, frozen=True):
    status: str = "skipped"
    memory_uris: list[str] = msgspec.field(default_factory=list)


class FileRemoved(WireStruct, frozen=True, kw_only=True):
    uri: str
    estimated_deleted_count: int
    """How many files and folders were removed. 0 if nothing was there."""
    memory_cleanup: MemoryCleanup = MemoryCleanup()
    semantic_root_uri: str | None = None
    semantic_status: Literal["complete", "queued"] = "complete"
    task_id: str | None = None


class FileRestored(WireStruct, frozen=True, kw_only=True):
    uri: str
    version: int
    """The number of the current version; 0 for a folder."""
    restored: int
    """How many files and folders were brought back."""


class FileVersion(WireStruct, frozen=True, kw_only=True):
    version: int
    created_at: datetime
    author: str
    change: str
    """What made the version: create, replace, append, restore, add, import or copy."""
    size: int
    sha256: str
    content_type: str
    is_current: bool


class History(WireStruct, frozen=True, kw_only=True):
    uri: str
    removed_at: datetime | None
    """When the file was removed; None if it exists."""
    versions: list[FileVersion]
    has_more: bool
