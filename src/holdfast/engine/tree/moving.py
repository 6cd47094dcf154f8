"""Moving, copying and removing files and folders."""

from typing import Any

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.engine.tree import changes
from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.places import Place, require_place
from holdfast.engine.tree.writing import context_type, require_node
from holdfast.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, TooLargeError
from holdfast.model.identity import Principal
from holdfast.model.tree.file_changes import FileCopied, FileMoved, FileRemoved
from holdfast.model.uris import MAX_PATH_BYTES, parse_uri
from holdfast.ops.tree.file_changes import CopyFile, MoveFile, RemoveFile
from holdfast.store.database import Tx
from holdfast.store.tables.tree import contents, nodes, relations, roots, unprocessed
from holdfast.store.tables.tree.nodes import NewNode, Node

MAX_COPIED_NODES = 10_000
"""How many files and folders one call copies."""


def _move(tx: Tx, principal: Principal, op: MoveFile, names: tuple[Names, Names], context: CallContext) -> FileMoved:
    source, target = (
        require_place(principal, op.from_uri, names[0]),
        require_place(principal, op.to_uri, names[1]),
    )
    tx.allow_long_statements()
    roots.lock(tx, [source.root, target.root])
    node = require_node(tx, source)
    moved = FileMoved(from_uri=source.uri, to_uri=target.uri)
    if (source.root, source.path) == (target.root, target.path):
        return moved
    _require_outside(node, source, target)
    _require_short_paths(tx, node, target)
    _replace_file(tx, context, node, target)
    changes.ensure_folders(tx, context, target)
    nodes.move(tx, node, target.root, target.path, target.name)
    relations.move(tx, source.uri, target.uri)
    if roots.owner_of(source.root) != roots.owner_of(target.root) or context_type(source.root) != context_type(
        target.root
    ):
        unprocessed.add_subtree(tx, target.root, target.path)  # documents carry their owner and kind
    changes.note_changes(tx, context, [node, (target.root, nodes.parent_of(target.path))])
    return moved


def _require_outside(node: Node, source: Place, target: Place) -> None:
    if node.is_folder and target.root == source.root and target.path.startswith(f"{source.path}/"):
        raise InvalidArgumentError("to_uri", f"{target.uri} is in {source.uri} itself; use another address")


def _require_short_paths(tx: Tx, node: Node, target: Place) -> None:
    longest = nodes.longest_path(tx, node) - len(node.path.encode()) + len(target.path.encode())
    if longest > MAX_PATH_BYTES:
        raise InvalidArgumentError(
            "to_uri", f"a path in it would be longer than {MAX_PATH_BYTES} bytes; use shorter names"
        )


def _replace_file(tx: Tx, context: CallContext, node: Node, target: Place) -> None:
    """Remove the file at the target of a move or copy. A folder there is an error."""
    existing = nodes.find(tx, target.root, target.path)
    if existing is None:
        return
    if existing.is_folder or node.is_folder:
        raise AlreadyExistsError(
            f"{target.uri} exists already; remove it, or use another address", resource=target.uri, type="file"
        )
    nodes.remove(tx, existing, context.ids.log_id(), context.now)
    unprocessed.add(tx, [existing.node_id])
    relations.remove(tx, target.uri)


def _copy(tx: Tx, principal: Principal, op: CopyFile, names: tuple[Names, Names], context: CallContext) -> FileCopied:
    source, target = (
        require_place(principal, op.from_uri, names[0]),
        require_place(principal, op.to_uri, names[1]),
    )
    roots.lock(tx, [source.root, target.root])
    node = require_node(tx, source)
    if node.is_folder and not op.recursive:
        raise FailedPreconditionError(f"{source.uri} is a folder; set recursive to copy it", resource=source.uri)
    _require_outside(node, source, target)
    _require_short_paths(tx, node, target)
    count = nodes.count_subtree(tx, source.root, source.path)
    if count > MAX_COPIED_NODES:
        raise TooLargeError(
            f"{source.uri} has {count:,} files; one copy has at most {MAX_COPIED_NODES:,}, copy its folders"
        )
    if (source.root, source.path) == (target.root, target.path):
        raise InvalidArgumentError("to_uri", "is the address of the original; use another one")
    _replace_file(tx, context, node, target)
    changes.ensure_folders(tx, context, target)
    copied = [_copy_node(tx, principal, context, node, target.root, target.path, target.name)]
    for each in list(nodes.walk(tx, source.root, source.path)) if node.is_folder else []:
        path = target.path + each.path[len(source.path) :]
        copied.append(_copy_node(tx, principal, context, each, target.root, path, each.name))
    changes.note_changes(tx, context, [(target.root, nodes.parent_of(target.path))], copied)
    return FileCopied(
        operation_id=context.ids.new("copy"),
        from_uri=source.uri,
        to_uri=target.uri,
        recursive=op.recursive,
        files_created=sum(not each.is_folder for each in nodes.read(tx, copied)),
    )


def _copy_node(tx: Tx, principal: Principal, context: CallContext, node: Node, root: str, path: str, name: str) -> int:
    node_id = context.ids.log_id()
    new = NewNode(
        node_id=node_id, root=root, path=path, name=name, is_folder=bool(node.is_folder), tags=node.tags, meta=node.meta
    )
    nodes.insert(tx, new, context.now)
    original = None if node.is_folder or node.content_id is None else contents.find(tx, node.content_id)
    if original is not None:
        content_id = context.ids.log_id()
        copy = original._replace(
            content_id=content_id,
            node_id=node_id,
            version=1,
            created_at=context.now,
            author=principal.user_id,
            change="copy",
        )
        contents.insert(tx, copy)
        nodes.set_content(tx, node_id, content_id, None)
    return node_id


def _remove(tx: Tx, principal: Principal, op: RemoveFile, names: Names, context: CallContext) -> FileRemoved:
    place = require_place(principal, op.uri, names)
    tx.allow_long_statements()
    roots.lock(tx, [place.root])
    node = nodes.find(tx, place.root, place.path)
    if node is None:
        return FileRemoved(uri=place.uri, estimated_deleted_count=0)
    if node.is_folder and not op.recursive and nodes.children(tx, place.root, place.path, "", 1):
        raise FailedPreconditionError(f"{place.uri} is not empty; set recursive to remove it", resource=place.uri)
    count = nodes.remove(tx, node, context.ids.log_id(), context.now)
    changes.note_changes(tx, context, [node], [node.node_id])
    return FileRemoved(
        uri=place.uri,
        estimated_deleted_count=count,
        semantic_root_uri=place.uri_of(nodes.parent_of(place.path)),
        semantic_status="queued",
    )


def _parse_both(_context: CallContext, op: Any) -> tuple[Names, Names]:
    names = parse_uri(op.from_uri), parse_uri(op.to_uri)
    for field, found in zip(("from_uri", "to_uri"), names, strict=True):
        if not found:
            raise InvalidArgumentError(field, "is the root of the tree; name a file or a folder")
    return names


def _parse_uri(_context: CallContext, op: RemoveFile) -> Names:
    return parse_uri(op.uri)


HANDLERS: dict[type, OperationHandler] = {
    MoveFile: OperationHandler(_move, writes=always, check=_parse_both),
    CopyFile: OperationHandler(_copy, writes=always, check=_parse_both),
    RemoveFile: OperationHandler(_remove, writes=always, check=_parse_uri),
}
