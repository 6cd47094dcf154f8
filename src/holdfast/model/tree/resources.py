"""Resources that are added to the tree, and watches that add them again."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from holdfast.model.base import WireStruct
from holdfast.validation import prebuild_decoder

SourceKind = Literal["upload", "url", "git", "folder"]
ADD_STAGES = ("queued", "fetching", "parsing", "finalizing", "processing_queue")
"""The stages of a task that adds a resource, in order."""


class FileProblem(WireStruct, frozen=True, kw_only=True):
    """A file that was left out."""

    file: str
    """Its path in the source."""
    message: str


class QueueProgress(WireStruct, frozen=True, kw_only=True):
    processed: int = 0
    requeue_count: int = 0
    error_count: int = 0
    errors: list[FileProblem] = msgspec.field(default_factory=list)


class QueueStatus(WireStruct, frozen=True, kw_only=True, rename={"semantic": "Semantic", "embedding": "Embedding"}):
    """What was processed: texts and summaries (`Semantic`), and what a search finds (`Embedding`)."""

    semantic: QueueProgress = QueueProgress()
    embedding: QueueProgress = QueueProgress()


@prebuild_decoder
class ResourceOutcome(WireStruct, frozen=True, kw_only=True):
    """The result of a task that added a resource."""

    root_uri: str
    files: int
    """How many files the source has, without those that the request leaves out."""
    added: int
    changed: int
    unchanged: int
    removed: int
    missing: list[str]
    """Files of the resource that the source does not have any more. With `sync` they are removed."""
    errors: list[FileProblem]
    queue_status: QueueStatus
    context_count: int
    """How many files and folders the resource has."""


class ResourceAdded(WireStruct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a request that adds a resource. All but the first four fields need `wait`."""

    status: str
    """`accepted`, or with `wait` `success`."""
    root_uri: str
    source_path: str
    task_id: str
    errors: list[FileProblem] | None = None
    meta: dict[str, Any] | None = None
    queue_status: QueueStatus | None = None
    context_count: int | None = None
    added: int | None = None
    changed: int | None = None
    unchanged: int | None = None
    removed: int | None = None
    missing: list[str] | None = None
    """Files of the resource that the source does not have any more. With `sync` they were removed."""


def with_outcome(added: ResourceAdded, outcome: ResourceOutcome) -> ResourceAdded:
    """Return the answer to a request whose task is completed."""
    return ResourceAdded(
        status="success",
        root_uri=outcome.root_uri,
        source_path=added.source_path,
        task_id=added.task_id,
        errors=[*(added.errors or []), *outcome.errors],
        meta={},
        queue_status=outcome.queue_status,
        context_count=outcome.context_count,
        added=outcome.added,
        changed=outcome.changed,
        unchanged=outcome.unchanged,
        removed=outcome.removed,
        missing=outcome.missing,
    )


class Watch(WireStruct, frozen=True, kw_only=True):
    """A resource that is read again at intervals."""

    task_id: str
    """The id of the watch."""
    path: str
    """What is read."""
    to_uri: str
    watch_interval: float
    """In minutes."""
    is_active: bool
    reason: str
    instruction: str
    next_execution_time: datetime | None
    """None while the watch is paused."""
    last_execution_time: datetime | None
    last_task_id: str | None
    """The background task that read it last."""
    last_status: str | None
    last_error: str | None
    created_at: datetime
    user_id: str


class WatchList(WireStruct, frozen=True, kw_only=True):
    tasks: list[Watch]
    total: int


class WatchDeleted(WireStruct, frozen=True, kw_only=True):
    task_id: str
    to_uri: str


class WatchTriggered(WireStruct, frozen=True, kw_only=True):
    task_id: str
    """The background task that reads the resource."""
    watch_id: str
    to_uri: str


class ResourceSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where the files of a resource come from."""

    kind: SourceKind
    location: str
    """The URL or the folder; of an upload, its name."""
    name: str
    """The name of the file or the folder, as far as it is known."""
    hash: str = ""
    """Of an upload: the hash of its bytes."""
    size: int = 0
    is_archive: bool = False


class ResourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the files of a resource are chosen and described."""

    reason: str = ""
    instruction: str = ""
    strict: bool = False
    sync: bool = False
    include: str = ""
    exclude: str = ""
    ignore_dirs: str | None = None
    tags: list[str] = []
    tag_mode: str = "replace"


@prebuild_decoder
class AddPayload(msgspec.Struct, frozen=True, kw_only=True):
    """What a task that adds a resource works on."""

    author: str
    root: str
    """The root of the tree with the resource."""
    path: str
    """The path of the resource below the root."""
    uri: str
    source: ResourceSource
    options: ResourceOptions = ResourceOptions()


@prebuild_decoder
class WatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a watch asks for each time."""

    payload: AddPayload
    watch_interval: float
