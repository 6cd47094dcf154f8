"""Adding a resource: the request becomes a task, and may wait for it."""

import re
from collections.abc import Generator
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

import msgspec

from holdfast.config import Settings
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.engine.gate.polling import not_done, poll_task
from holdfast.engine.resources import naming, watching
from holdfast.engine.resources.placing import choose_place, order_of
from holdfast.engine.tasks.order import add_task
from holdfast.engine.transfers.uploads import require_complete
from holdfast.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
    from_wire,
    short_repr,
)
from holdfast.model.identity import Principal
from holdfast.model.tasks import ADD_RESOURCE
from holdfast.model.tree.resources import (
    AddPayload,
    ResourceAdded,
    ResourceOptions,
    ResourceOutcome,
    ResourceSource,
    with_outcome,
)
from holdfast.model.uris import parse_uri
from holdfast.ops.tree.resources import AddResource
from holdfast.store.database import Tx
from holdfast.store.tables.tasks import StoredTask

_WEB = re.compile(r"https?://", re.IGNORECASE)
_GIT = re.compile(r"(?:git|ssh|git\+ssh)://|git@", re.IGNORECASE)
_LOCAL = re.compile(r"[/~\\]|\.\.?[/\\]|[A-Za-z]:[/\\]|file:", re.IGNORECASE)
_decode_outcome = msgspec.json.Decoder(ResourceOutcome).decode


def _check(_context: CallContext, op: AddResource) -> None:
    if op.to and op.parent:
        raise InvalidArgumentError("to", "and parent were both given; use one of them")
    for field, uri in (("to", op.to), ("parent", op.parent)):
        if uri and not parse_uri(uri):
            raise InvalidArgumentError(field, "is the root of the tree; use an address in viking://resources")
    if not op.temp_file_id and not (op.path or "").strip():
        raise InvalidArgumentError("path", "and temp_file_id are both missing; upload a file, or name a URL")
    if not op.temp_file_id and op.path and not _looks_like_source(op.path.strip()):
        raise InvalidArgumentError(
            "path", f"{short_repr(op.path)} is not a URL; a server reads no local files: upload a file or a text"
        )
    _check_options(op)


def _check_options(op: AddResource) -> None:
    """Refuse what would change the result and is not supported."""
    if op.args:
        raise InvalidArgumentError("args", f"{min(op.args)} is not known; leave it out")
    if op.acl:
        raise InvalidArgumentError(
            "acl", "is not supported; add the resource to viking://~/resources to keep it private"
        )
    if op.add_type not in {None, "", "auto", "git"}:
        raise InvalidArgumentError("add_type", f"{short_repr(op.add_type)} is not supported; use git, or leave it out")
    if op.watch_interval > 0 and op.temp_file_id:
        raise InvalidArgumentError("watch_interval", "an upload cannot be read again; watch a URL, or add it without")
    if op.watch_interval > 0 and not op.to:
        raise InvalidArgumentError("watch_interval", "needs `to`, the address that is updated")


def _looks_like_source(path: str) -> bool:
    return any(pattern.match(path) for pattern in (_WEB, _GIT, _LOCAL))


def _add(tx: Tx, principal: Principal, op: AddResource, _checked: None, context: CallContext) -> ResourceAdded:
    source = _find_source(tx, principal, op, context.settings)
    place = choose_place(tx, principal, op, source, context)
    payload = AddPayload(
        author=principal.user_id,
        root=place.root,
        path=place.path,
        uri=place.uri,
        source=source,
        options=ResourceOptions(
            reason=op.reason,
            instruction=op.instruction,
            strict=op.strict,
            sync=op.sync,
            include=op.include or "",
            exclude=op.exclude or "",
            ignore_dirs=op.ignore_dirs or None,
            tags=op.tags or [],
            tag_mode=op.tag_mode,
        ),
    )
    task_id = start_adding(tx, context, principal.internal_id, payload)
    if op.watch_interval > 0:
        watching.start_watch(tx, principal, payload, op.watch_interval, task_id, context)
    return ResourceAdded(
        status="accepted", root_uri=place.uri, source_path=op.source_name or source.location, task_id=task_id
    )


def start_adding(tx: Tx, context: CallContext, internal_id: str, payload: AddPayload) -> str:
    """Add the task of a resource, after those that add the same one. The root is locked. Return the task's id."""
    return add_task(
        tx,
        context,
        ADD_RESOURCE,
        user_id=internal_id,
        resource_id=payload.uri,
        subject=payload.uri,
        payload=payload,
        order=order_of(payload.uri),
    )


def _find_source(tx: Tx, principal: Principal, op: AddResource, settings: Settings) -> ResourceSource:
    if op.temp_file_id:
        upload, digest = require_complete(tx, principal, op.temp_file_id)
        is_archive = upload.name.lower().endswith(naming.ARCHIVE_SUFFIX)
        name = naming.file_name(op.source_name or upload.name)
        return ResourceSource(
            kind="upload",
            location=op.source_name or upload.name,
            name=name,
            hash=digest,
            size=upload.size,
            is_archive=is_archive,
        )
    path = (op.path or "").strip()
    is_git = op.add_type == "git" or _GIT.match(path) is not None or path.partition("?")[0].endswith(".git")
    if _LOCAL.match(path):
        return _local_folder(path, settings)
    if is_git and not settings.fetch_git:
        raise PermissionDeniedError(
            "this server fetches no Git repositories; its operator can allow it with the setting fetch_git"
        )
    if not is_git and not settings.fetch_urls:
        raise PermissionDeniedError(
            "this server fetches no URLs; its operator can allow it with the setting fetch_urls"
        )
    if not urlsplit(path).hostname or not _WEB.match(path):
        raise InvalidArgumentError("path", f"{short_repr(path)} is not an http or https URL with a host")
    name = naming.name_of_url(path)
    if is_git:
        return ResourceSource(kind="git", location=path, name=name.removesuffix(".git") or name)
    is_archive = name.lower().endswith(naming.ARCHIVE_SUFFIX)
    return ResourceSource(
        kind="url", location=path, name=naming.file_name(op.source_name or name), is_archive=is_archive
    )


def allowed_folders(settings: Settings) -> list[PurePath]:
    return [PurePath(folder.strip()) for folder in (settings.resource_folders or "").split(",") if folder.strip()]


def _local_folder(path: str, settings: Settings) -> ResourceSource:
    """Return a folder of this machine as a source. The task checks again where its links lead."""
    folder = PurePath(path)
    if ".." in folder.parts or not any(folder.is_relative_to(each) for each in allowed_folders(settings)):
        raise PermissionDeniedError(
            f"{short_repr(path)} is a path of the server's machine, which it does not read; upload the file, or let the"
            " operator allow the folder with the setting resource_folders"
        )
    return ResourceSource(kind="folder", location=path, name=naming.file_name(folder.name))


def _wait_for_task(
    resources: EngineResources, principal: Principal, op: AddResource, added: ResourceAdded
) -> Generator[float, None, ResourceAdded]:
    """Wait until the resource is added, if the caller asked for it. Return what was added."""
    if not op.wait:
        return added
    late = not_done(
        f"the task {added.task_id}, which adds {added.root_uri},", task_id=added.task_id, root_uri=added.root_uri
    )
    task = yield from poll_task(resources, principal.account_id, added.task_id, op.timeout, late)
    return _result_of(task, added)


def _result_of(task: StoredTask | None, added: ResourceAdded) -> ResourceAdded:
    if task is None or task.status == "cancelled":
        raise FailedPreconditionError(f"{added.task_id} was cancelled; nothing was added", resource=added.task_id)
    if task.status == "failed" or task.result is None:
        details: dict[str, Any] = {"task_id": added.task_id, "root_uri": added.root_uri}
        raise from_wire(task.error_code or "INTERNAL", f"nothing was added: {task.error}", details)
    return with_outcome(added, _decode_outcome(task.result))


HANDLERS: dict[type, OperationHandler] = {
    AddResource: OperationHandler(_add, writes=always, check=_check, follow=_wait_for_task)
}
