"""Writing files and making folders."""

from collections.abc import Generator
from typing import Any

from msgspec.structs import replace

from holdfast.engine.gate.access import ensure_account
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.engine.gate.polling import not_done, poll
from holdfast.engine.tree import changes, mounts, stored_texts
from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.places import Place, require_place
from holdfast.errors import (
    AlreadyExistsError,
    ConflictError,
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    TooLargeError,
)
from holdfast.model.identity import Principal
from holdfast.model.tree.file_changes import BatchWritten, FileWritten, FolderMade
from holdfast.model.uris import parse_uri
from holdfast.ops.tree.file_changes import MAX_CONTENT_CHARS, MakeFolder, WriteFile, WriteFiles
from holdfast.store.database import Tx
from holdfast.store.tables.tree import blobs, contents, nodes, roots, unprocessed
from holdfast.store.tables.tree.contents import Content
from holdfast.store.tables.tree.nodes import NewNode, Node

MAX_APPENDED_BYTES = 64_000_000
"""How much one batch stores by appending: each append stores the whole file, while other writers wait."""


def _write(tx: Tx, principal: Principal, op: WriteFile, names: Names, context: CallContext) -> FileWritten:
    place = require_place(principal, op.uri, names)
    ensure_account(tx, principal, context)
    roots.lock(tx, [place.root])
    return _write_at(tx, principal, op, place, context)


def _write_at(tx: Tx, principal: Principal, op: WriteFile, place: Place, context: CallContext) -> FileWritten:
    """Write a file at a place whose root is locked."""
    node = nodes.find(tx, place.root, place.path)
    _require_expected(op, node)
    if node is None:
        content, is_changed = _create(tx, principal, op, place, context), True
    else:
        content, is_changed = _change(tx, principal, op, place, node, context)
        if op.tags is not None:
            nodes.set_tags(tx, node.node_id, changes.encode_tags(op.tags))
    return FileWritten(
        uri=place.uri,
        root_uri=place.uri_of(nodes.parent_of(place.path)),
        context_type=context_type(place.root),
        mode=op.mode,
        written_bytes=len(op.content.encode()),
        content_updated=is_changed,
        version=content.version,
        sha256=content.blob or "",
        semantic_status="queued" if content.state == "pending" else "complete",
        vector_status="queued" if content.state == "pending" else "complete",
    )


def _write_batch(
    tx: Tx, principal: Principal, op: WriteFiles, names: list[Names], context: CallContext
) -> BatchWritten:
    root_names, *file_names = names
    folder = mounts.require_folder(tx, principal, op.root_uri, root_names)
    places = [require_place(principal, each.uri, found) for each, found in zip(op.operations, file_names, strict=True)]
    for number, place in enumerate(places):
        if not place.uri.startswith(f"{folder.uri.rstrip('/')}/"):
            raise InvalidArgumentError(
                f"operations[{number}].uri", f"{place.uri} is not below {folder.uri}; use an address in it"
            )
    ensure_account(tx, principal, context)
    roots.lock(tx, [place.root for place in places])
    if tx.dialect.lock_row:  # in one order, so that transactions cannot deadlock
        blobs.insert_all(tx, [each.content.encode() for each in op.operations if each.mode != "append"])
    results: list[FileWritten] = []
    skipped: list[str] = []
    appended = 0
    for each, place in zip(op.operations, places, strict=True):
        single = WriteFile(uri=each.uri, content=each.content, mode=each.mode, expected_sha256=each.expected_sha256)
        try:
            results.append(_write_at(tx, principal, single, place, context))
            appended += _size_at(tx, place) if each.mode == "append" else 0
        except (ConflictError, AlreadyExistsError):  # raised before the file is changed
            if not op.skip_conflicts:
                raise
            skipped.append(place.uri)
        if appended > MAX_APPENDED_BYTES:
            raise TooLargeError(
                f"operations: the files to append to have more than {MAX_APPENDED_BYTES:,} bytes; use several batches"
            )
    return BatchWritten(root_uri=folder.uri, results=results, skipped=skipped)


def _size_at(tx: Tx, place: Place) -> int:
    node = nodes.find(tx, place.root, place.path)
    return 0 if node is None else node.size


def _parse_batch(_context: CallContext, op: WriteFiles) -> list[Names]:
    names = [parse_uri(op.root_uri), *(parse_uri(each.uri) for each in op.operations)]
    if () in names[1:]:
        number = names.index((), 1) - 1
        raise InvalidArgumentError(f"operations[{number}].uri", "is the root of the tree; name a file")
    return names


def _require_expected(op: WriteFile, node: Node | None) -> None:
    version, digest = (0, "") if node is None else (node.version, node.blob)
    if op.expected_version is not None and op.expected_version != version:
        raise ConflictError(
            f"expected_version: {op.uri} has version {version}, not {op.expected_version}; read it and try again",
            resource=op.uri,
            type="file",
        )
    if op.expected_sha256 is not None and op.expected_sha256.lower() != digest:
        raise ConflictError(
            f"expected_sha256: {op.uri} has the hash {digest or 'of no file'}; read it and try again",
            resource=op.uri,
            type="file",
        )


def _create(tx: Tx, principal: Principal, op: WriteFile, place: Place, context: CallContext) -> Content:
    ensure_account(tx, principal, context)
    changes.ensure_folders(tx, context, place)
    node_id = context.ids.log_id()
    tags = changes.encode_tags(op.tags or [])
    new = NewNode(node_id=node_id, root=place.root, path=place.path, name=place.name, is_folder=False, tags=tags)
    nodes.insert(tx, new, context.now)
    media_type = changes.text_type_of(place.name)
    data = op.content.encode()
    content = changes.add_version(tx, context, node_id, principal.user_id, "create", data, media_type)
    changes.note_changes(tx, context, [(place.root, nodes.parent_of(place.path))], [node_id])
    return content


def _change(
    tx: Tx, principal: Principal, op: WriteFile, place: Place, node: Node, context: CallContext
) -> tuple[Content, bool]:
    """Write an existing file. Also return whether it has another content now."""
    if op.mode == "create":
        raise AlreadyExistsError(f"{place.uri} exists already; use the mode replace", resource=place.uri, type="file")
    if node.is_folder:
        raise InvalidArgumentError("uri", f"{place.uri} is a folder; write a file in it")
    current = stored_texts.require_content(tx, place.uri, node)
    data = op.content.encode()
    if op.mode == "append":
        data = _require_text(tx, place, current) + data
        if len(data) > MAX_CONTENT_CHARS:
            raise TooLargeError(f"{place.uri} would be longer than {MAX_CONTENT_CHARS:,} bytes; write another file")
    if blobs.hash_of(data) == current.blob:
        return current, False
    media_type = current.media_type if stored_texts.is_text(current.media_type) else changes.text_type_of(node.name)
    content = changes.add_version(tx, context, node.node_id, principal.user_id, op.mode, data, media_type)
    changes.note_changes(tx, context, [node], [node.node_id])
    return content, True


def _require_text(tx: Tx, place: Place, content: Content) -> bytes:
    if content.blob is None or not stored_texts.is_text(content.media_type):
        raise InvalidArgumentError("mode", f"{place.uri} is no text file ({content.media_type}); use the mode replace")
    data = blobs.read(tx, content.blob)
    try:
        data.decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError("mode", f"{place.uri} is not in UTF-8; write the whole text instead") from None
    return data


def context_type(root: str) -> Any:
    """Return which kind of context the nodes of a root are."""
    return "skill" if root.endswith("/skills") else "resource"


def _follow(
    resources: EngineResources, principal: Principal, op: WriteFile, written: FileWritten
) -> Generator[float, None, FileWritten]:
    """Wait until the file is processed, if the caller asked for it. If that takes too long, it stays queued."""
    if not op.wait:
        return written
    place = require_place(principal, op.uri, parse_uri(op.uri))

    def is_processed() -> bool:
        return resources.db.read(principal.account_id, lambda tx: _is_processed(tx, place))

    try:
        yield from poll(resources, is_processed, op.timeout, not_done(f"the processing of {place.uri}"))
    except DeadlineExceededError:
        return written
    return replace(written, semantic_status="complete")


def _follow_batch(
    resources: EngineResources, principal: Principal, op: WriteFiles, written: BatchWritten
) -> Generator[float, None, BatchWritten]:
    """Wait until all files are processed, if the caller asked for it."""
    if not op.wait:
        return written
    places = [require_place(principal, each.uri, parse_uri(each.uri)) for each in written.results]

    def are_processed() -> bool:
        return resources.db.read(principal.account_id, lambda tx: all(_is_processed(tx, place) for place in places))

    late = not_done(f"the processing of the files below {written.root_uri}")
    try:
        yield from poll(resources, are_processed, op.timeout, late)
    except DeadlineExceededError:
        return written
    return replace(written, results=[replace(each, semantic_status="complete") for each in written.results])


def _is_processed(tx: Tx, place: Place) -> bool:
    node = nodes.find(tx, place.root, place.path)
    return node is None or not unprocessed.has(tx, node.node_id)


def _make_folder(tx: Tx, principal: Principal, op: MakeFolder, names: Names, context: CallContext) -> FolderMade:
    place = require_place(principal, op.uri, names)
    ensure_account(tx, principal, context)
    roots.lock(tx, [place.root])
    node = nodes.find(tx, place.root, place.path)
    if node is not None and not node.is_folder:
        raise AlreadyExistsError(f"{place.uri} is a file; use another address", resource=place.uri, type="file")
    if node is None:
        ensure_account(tx, principal, context)
        changes.ensure_folders(tx, context, place)
        node_id = changes.insert_folder(tx, context, place.root, place.path)
        if op.description:
            _describe(tx, context, node_id, op.description)
        changes.note_changes(tx, context, [(place.root, nodes.parent_of(place.path))])
    return FolderMade(uri=place.uri)


def _describe(tx: Tx, context: CallContext, node_id: int, description: str) -> None:
    """Give a folder a summary until it has children."""
    content = changes.new_content(context, node_id, contents.FOLDER_VERSION, "", "summary", "", 0, "")
    content = content._replace(blob=None, state="done", abstract=description[:256], overview=description)
    contents.insert(tx, content)
    nodes.set_content(tx, node_id, content.content_id, None)
    nodes.set_meta(tx, node_id, changes.encode_meta({"description": description}))


def _parse_uri(_context: CallContext, op: Any) -> Names:
    names = parse_uri(op.uri)
    if not names:
        raise InvalidArgumentError("uri", "is the root of the tree; name a file or a folder")
    return names


def require_node(tx: Tx, place: Place) -> Node:
    """Return the node at a place."""
    node = nodes.find(tx, place.root, place.path)
    if node is None:
        raise NotFoundError("file", place.uri)
    return node


HANDLERS: dict[type, OperationHandler] = {
    WriteFile: OperationHandler(_write, writes=always, check=_parse_uri, follow=_follow),
    WriteFiles: OperationHandler(_write_batch, writes=always, check=_parse_batch, follow=_follow_batch),
    MakeFolder: OperationHandler(_make_folder, writes=always, check=_parse_uri),
}
