"""Client methods that add resources, and manage the watches that add them again."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

from msgspec import convert, structs

from holdfast import lazy
from holdfast.client import blocking
from holdfast.client.files import ProgressCallback, ignore_progress
from holdfast.client.sync.transport import Transport
from holdfast.client.sync.tree.transfers import Transfers
from holdfast.engine.resources.selection import parse_selection
from holdfast.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError, from_wire, short_repr
from holdfast.model.tree.resources import (
    ResourceAdded,
    ResourceOutcome,
    Watch,
    WatchDeleted,
    WatchList,
    WatchTriggered,
    with_outcome,
)
from holdfast.model.uris import SCHEME
from holdfast.ops.tasks import GetTask
from holdfast.ops.tree.resources import (
    AddResource,
    DeleteWatch,
    DeleteWatchOf,
    GetWatch,
    ListWatches,
    TriggerWatch,
    TriggerWatchOf,
    UpdateWatch,
    UpdateWatchOf,
)

FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.5
REMOTE = ("http://", "https://", "git://", "ssh://", "git@")
MAX_PATH_CHARS = 4_096


class Resources(Transfers):
    """Resources: files, folders, archives, texts and pages in the tree; and their watches."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def add_resource(
        self,
        source: str | Path | bytes,
        *,
        name: str | None = None,
        to: str | None = None,
        parent: str | None = None,
        create_parent: bool = False,
        reason: str = "",
        instruction: str = "",
        wait: bool = False,
        timeout: float | None = None,
        strict: bool = False,
        sync: bool = False,
        include: str | None = None,
        exclude: str | None = None,
        ignore_dirs: str | None = None,
        tags: Sequence[str] | None = None,
        watch_interval: float = 0,
        on_progress: ProgressCallback | None = None,
    ) -> ResourceAdded:
        """Add a file, a folder, a zip archive, a URL or a text to the tree. A background task reads it.

        - `source`: a path; a URL, if the server fetches URLs; or with `name`, a text or bytes.
        - `to`: the address of the resource. If it exists, it is updated: a changed file gets a new version. Without
          `to`, a new resource is named after the source, in `parent`.
        - `reason`, `instruction`: why it is added, and what matters in it. The abstracts and overviews have them.
        - `wait`: return when it can be read and found, for at most `timeout` seconds. `on_progress` is called with
          the number of files done, the number of all files, and the stage.
        - `strict`: add nothing if one file cannot be read. Otherwise `errors` of the result names such files.
        - `sync`: remove files of the resource that the source does not have any more.
        - `include`, `exclude`: patterns of file names, such as `*.md,*.txt`.
        - `ignore_dirs`: folders to leave out; by default `.git,node_modules,__pycache__`.
        - `watch_interval`: read a URL, or a folder of the server, again after so many minutes. This needs `to`.
        """
        op = AddResource(
            to=to,
            parent=parent,
            create_parent=create_parent,
            source_name=name,
            reason=reason,
            instruction=instruction,
            strict=strict,
            sync=sync,
            include=include,
            exclude=exclude,
            ignore_dirs=ignore_dirs,
            tags=None if tags is None else list(tags),
            watch_interval=watch_interval,
        )
        added = self._start(source, name, op)
        return self._wait_until_added(added, timeout, on_progress or ignore_progress) if wait else added

    def _start(self, source: str | Path | bytes, name: str | None, op: AddResource) -> ResourceAdded:
        """Upload the source if it is on this machine, and start the task that adds it."""
        if isinstance(source, str) and source.startswith(REMOTE):
            return self._transport.call(structs.replace(op, path=source))
        if op.watch_interval > 0 and not isinstance(source, bytes):
            return self._transport.call(structs.replace(op, path=str(Path(source).absolute())))
        with ExitStack() as stack:
            packed = blocking.run(stack.enter_context, _open_source(source, name, op))
            if op.strict and packed.problems:
                problem = packed.problems[0]
                raise InvalidArgumentError("source", f"{problem.file} cannot be added: {problem.message}")
            upload = self.upload(packed.path, name=packed.name)
            named = structs.replace(op, temp_file_id=upload.temp_file_id, source_name=name or packed.source_name)
            added = self._transport.call(named)
        return structs.replace(added, errors=packed.problems or None)

    def _wait_until_added(
        self, added: ResourceAdded, seconds: float | None, on_progress: ProgressCallback
    ) -> ResourceAdded:
        deadline = None if seconds is None else monotonic() + seconds
        poll_seconds = FIRST_POLL_SECONDS
        while True:
            task = self._transport.call(GetTask(task_id=added.task_id))
            on_progress(task.progress.done, task.progress.total, task.stage or task.status)
            if task.status not in {"pending", "running"}:
                break
            if deadline is not None and monotonic() > deadline:
                raise DeadlineExceededError(
                    f"{added.root_uri} is not added after {seconds:g} s; {added.task_id} continues in the background",
                    task_id=added.task_id,
                )
            time.sleep(poll_seconds)
            poll_seconds = min(poll_seconds * 1.5, MAX_POLL_SECONDS)
        if task.status == "completed":
            return with_outcome(added, convert(task.result, ResourceOutcome))
        if task.status == "failed":
            details = {"task_id": added.task_id, "root_uri": added.root_uri}
            raise from_wire(task.error_code or "INTERNAL", f"nothing was added: {task.error}", details)
        raise FailedPreconditionError(f"{added.task_id} was cancelled; nothing was added", resource=added.task_id)

    def list_watches(self, *, active_only: bool = False, to_uri: str | None = None) -> WatchList:
        """List the watches of the caller. An administrator sees those of the account."""
        return self._transport.call(ListWatches(active_only=active_only, to_uri=to_uri))

    def get_watch(self, watch: str) -> Watch:
        """Return a watch, by its id or by the address of its resource."""
        if not watch.startswith(SCHEME):
            return self._transport.call(GetWatch(watch_id=watch))
        found = self._transport.call(ListWatches(to_uri=watch))
        if not found.tasks:
            raise from_wire("NOT_FOUND", f"Watch {watch} not found", {"type": "watch", "resource": watch})
        return found.tasks[0]

    def update_watch(
        self,
        watch: str,
        *,
        is_active: bool | None = None,
        watch_interval: float | None = None,
        reason: str | None = None,
        instruction: str | None = None,
    ) -> Watch:
        """Pause, resume or change a watch, by its id or by the address of its resource."""
        changes: dict[str, Any] = {
            "is_active": is_active,
            "watch_interval": watch_interval,
            "reason": reason,
            "instruction": instruction,
        }
        if watch.startswith(SCHEME):
            return self._transport.call(UpdateWatchOf(to_uri=watch, **changes))
        return self._transport.call(UpdateWatch(watch_id=watch, **changes))

    def delete_watch(self, watch: str) -> WatchDeleted:
        """End a watch, by its id or by the address of its resource. The resource stays."""
        if watch.startswith(SCHEME):
            return self._transport.call(DeleteWatchOf(to_uri=watch))
        return self._transport.call(DeleteWatch(watch_id=watch))

    def trigger_watch(self, watch: str) -> WatchTriggered:
        """Read the source of a watch now. The result names the background task."""
        if watch.startswith(SCHEME):
            return self._transport.call(TriggerWatchOf(to_uri=watch))
        return self._transport.call(TriggerWatch(watch_id=watch))


def _open_source(source: str | Path | bytes, name: str | None, op: AddResource) -> AbstractContextManager[Any]:
    """Return the file to upload for a source: a file, a packed folder, or a text that was written to a file."""
    packing = lazy.load("holdfast.client.packing")
    if isinstance(source, bytes):
        if not name:
            raise InvalidArgumentError("name", "is missing; bytes need the name of a file, such as report.pdf")
        opened: AbstractContextManager[Any] = packing.written_bytes(source, name)
        return opened
    path = _existing_path(source)
    if path is not None and path.is_dir():
        opened = packing.packed_folder(path, parse_selection(op.include, op.exclude, op.ignore_dirs))
    elif path is not None:
        opened = packing.existing_file(path)
    elif isinstance(source, str) and name:
        opened = packing.written_bytes(source.encode(), name)
    else:
        raise InvalidArgumentError(
            "source", f"{short_repr(str(source))} is neither a file, a folder nor a URL; to add a text, give its `name`"
        )
    return opened


def _existing_path(source: str | Path) -> Path | None:
    if isinstance(source, str) and (len(source) > MAX_PATH_CHARS or "\n" in source or "\0" in source):
        return None
    path = Path(source)
    try:
        return path.resolve() if path.exists() else None
    except OSError:
        return None
