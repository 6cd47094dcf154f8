"""The versions of stored files: listing them, and restoring one, or what was removed."""

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.engine.tree import changes, stored_texts
from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.places import Place, find_place, require_place
from holdfast.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from holdfast.model.identity import Principal
from holdfast.model.tree.file_changes import FileRestored, FileVersion, History
from holdfast.model.uris import parse_uri
from holdfast.ops.tree.file_changes import ReadHistory, RestoreFile
from holdfast.store.database import Tx
from holdfast.store.tables.tree import contents, nodes, roots, unprocessed
from holdfast.store.tables.tree.contents import Content
from holdfast.store.tables.tree.nodes import Node
from holdfast.store.timestamps import from_micros


def _history(tx: Tx, principal: Principal, op: ReadHistory, names: Names, _context: CallContext) -> History:
    place = find_place(principal, names)
    node = None if place is None else find_with_removed(tx, place)
    if place is None or node is None:
        raise NotFoundError("file", op.uri)
    if node.is_folder:
        raise FailedPreconditionError(f"{op.uri} is a folder; files have versions", resource=op.uri)
    found = contents.versions(tx, node.node_id, op.before, op.limit + 1)
    return History(
        uri=place.uri,
        removed_at=None if node.removed_at is None else from_micros(node.removed_at),
        versions=[_version(each, node) for each in found[: op.limit]],
        has_more=len(found) > op.limit,
    )


def find_with_removed(tx: Tx, place: Place) -> Node | None:
    """Return the node at a place, or what was removed there last."""
    return nodes.find(tx, place.root, place.path) or nodes.last_removed(tx, place.root, place.path)


def _version(content: Content, node: Node) -> FileVersion:
    return FileVersion(
        version=content.version,
        created_at=from_micros(content.created_at),
        author=content.author,
        change=content.change,
        size=content.size,
        sha256=content.blob or "",
        content_type=content.media_type,
        is_current=content.content_id == node.content_id and node.removed_at is None,
    )


def _restore(tx: Tx, principal: Principal, op: RestoreFile, names: Names, context: CallContext) -> FileRestored:
    place = require_place(principal, op.uri, names)
    tx.allow_long_statements()
    roots.lock(tx, [place.root])
    node = nodes.find(tx, place.root, place.path)
    restored = 0
    if node is None:
        node = nodes.last_removed(tx, place.root, place.path)
        if node is None:
            raise NotFoundError("file", op.uri)
        restored = _undo_removal(tx, context, place, node)
    elif op.version is None:
        raise InvalidArgumentError("version", f"{op.uri} exists; say which of its versions to restore")
    version = node.version
    if op.version is not None and op.version != version:
        version = _restore_version(tx, principal, context, place, node, op.version).version
        restored = max(restored, 1)
    return FileRestored(uri=place.uri, version=version, restored=restored)


def _undo_removal(tx: Tx, context: CallContext, place: Place, node: Node) -> int:
    changes.ensure_folders(tx, context, place)
    if nodes.has_conflict(tx, node):
        raise AlreadyExistsError(
            f"another file is at an address below {place.uri} now; move it away first", resource=place.uri, type="file"
        )
    nodes.restore(tx, node)
    unprocessed.add_subtree(tx, place.root, place.path)
    changes.note_changes(tx, context, [node])
    return 1 + nodes.count_subtree(tx, place.root, place.path)


def _restore_version(
    tx: Tx, principal: Principal, context: CallContext, place: Place, node: Node, version: int
) -> Content:
    """Add a copy of an earlier version as the newest one."""
    if node.is_folder:
        raise InvalidArgumentError("version", f"{place.uri} is a folder; files have versions")
    earlier = stored_texts.require_version(tx, place.uri, node, version)
    newest = contents.last_version(tx, node.node_id) + 1
    content = earlier._replace(
        content_id=context.ids.log_id(),
        version=newest,
        created_at=context.now,
        author=principal.user_id,
        change="restore",
    )
    contents.insert(tx, content)
    nodes.set_content(tx, node.node_id, content.content_id, context.now)
    changes.note_changes(tx, context, [node], [node.node_id])
    return content


def _parse_uri(_context: CallContext, op: ReadHistory | RestoreFile) -> Names:
    return parse_uri(op.uri)


HANDLERS: dict[type, OperationHandler] = {
    ReadHistory: OperationHandler(_history, check=_parse_uri),
    RestoreFile: OperationHandler(_restore, writes=always, check=_parse_uri),
}
