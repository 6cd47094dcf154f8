"""Operations that add resources, and manage the watches that add them again."""

from typing import Annotated, Any, Literal

import msgspec

from holdfast.model.tree.resources import ResourceAdded, Watch, WatchDeleted, WatchList, WatchTriggered
from holdfast.ops.table import Operation, operation
from holdfast.ops.tree.file_changes import Tags

MAX_MINUTES = 525_600
MAX_SOURCE_CHARS = 4_000
Note = Annotated[str, msgspec.Meta(max_length=10_000)]
Patterns = Annotated[str, msgspec.Meta(max_length=2_000)]
Address = Annotated[str, msgspec.Meta(max_length=MAX_SOURCE_CHARS)]
Minutes = Annotated[float, msgspec.Meta(ge=0, le=MAX_MINUTES)]
PositiveMinutes = Annotated[float, msgspec.Meta(gt=0, le=MAX_MINUTES)]
WaitSeconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
WatchId = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


@operation("POST /resources", audit="{result.root_uri}")
class AddResource(Operation[ResourceAdded], frozen=True, kw_only=True):
    """Add a file, a folder, an archive or a web page to the tree, in the background.

    A resource that exists is updated: unchanged files stay as they are, and a changed file gets a new version.
    """

    path: Address | None = None
    """A URL, if the server may fetch URLs; or a folder of the server that its operator allows."""
    temp_file_id: Address | None = None
    """A file that was uploaded. A zip archive is added with all its files."""
    to: Address | None = None
    """The address of the resource. Without it, the name follows from the source, in `parent`."""
    parent: Address | None = None
    """The folder of the resource; by default `viking://resources`."""
    create_parent: bool = False
    source_name: Annotated[str, msgspec.Meta(max_length=1_000)] | None = None
    """The name of the file or folder, if the upload has another one."""
    reason: Note = ""
    """Why it is added. The abstracts have it."""
    instruction: Note = ""
    """What matters in it. The overviews have it."""
    wait: bool = False
    """Return when the resource can be read and found."""
    timeout: WaitSeconds | None = None
    """How many seconds to wait at most."""
    strict: bool = False
    """Add nothing if one of the files cannot be read."""
    sync: bool = False
    """Remove files of the resource that the source does not have any more."""
    include: Patterns | None = None
    """Only files that match one of these patterns, such as `*.md,*.txt`."""
    exclude: Patterns | None = None
    """No files that match one of these patterns."""
    ignore_dirs: Patterns | None = None
    """Folders to leave out; by default `.git,node_modules,__pycache__`."""
    tags: Tags | None = None
    tag_mode: Literal["replace", "append", "clear"] = "replace"
    watch_interval: Minutes = 0
    """Read the source again after so many minutes, and then again and again. It needs `to`."""
    add_type: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    """`git` for a repository, if the server may fetch repositories."""
    processing_mode: Literal["semantic_and_vectors", "vectors_only"] = "semantic_and_vectors"
    directly_upload_media: bool = True
    preserve_structure: bool = True
    args: dict[str, Any] | None = None
    acl: dict[str, Any] | None = None


@operation("GET /watches", answer="bounded")
class ListWatches(Operation[WatchList], frozen=True, kw_only=True):
    """List the watches of the caller. An administrator sees those of the account."""

    active_only: bool = False
    to_uri: Address | None = None


@operation("GET /watches/{watch_id}")
class GetWatch(Operation[Watch], frozen=True, kw_only=True):
    """Return a watch."""

    watch_id: WatchId


@operation("PATCH /watches/{watch_id}", audit="{watch_id}")
class UpdateWatch(Operation[Watch], frozen=True, kw_only=True):
    """Pause, resume or change a watch."""

    watch_id: WatchId
    is_active: bool | None = None
    watch_interval: PositiveMinutes | None = None
    reason: Note | None = None
    instruction: Note | None = None


@operation("PATCH /watches", audit="{to_uri}")
class UpdateWatchOf(Operation[Watch], frozen=True, kw_only=True):
    """Pause, resume or change the watch of a resource."""

    to_uri: Address
    is_active: bool | None = None
    watch_interval: PositiveMinutes | None = None
    reason: Note | None = None
    instruction: Note | None = None


@operation("DELETE /watches/{watch_id}", audit="{watch_id}")
class DeleteWatch(Operation[WatchDeleted], frozen=True, kw_only=True):
    """End a watch. The resource stays."""

    watch_id: WatchId


@operation("DELETE /watches", audit="{to_uri}")
class DeleteWatchOf(Operation[WatchDeleted], frozen=True, kw_only=True):
    """End the watch of a resource. The resource stays."""

    to_uri: Address


@operation("POST /watches/{watch_id}/trigger", audit="{watch_id}")
class TriggerWatch(Operation[WatchTriggered], frozen=True, kw_only=True):
    """Read the source of a watch now."""

    watch_id: WatchId


@operation("POST /watches/trigger", audit="{to_uri}")
class TriggerWatchOf(Operation[WatchTriggered], frozen=True, kw_only=True):
    """Read the source of the watch of a resource now."""

    to_uri: Address
