"""Storing the files of a skill in its folder: new ones are added, changed ones get a version, others are removed."""

from typing import Literal, NamedTuple

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.skills.skill_roots import SkillRoot
from holdfast.engine.skills.sources import NewFile
from holdfast.engine.tree import changes
from holdfast.errors import AlreadyExistsError
from holdfast.model.identity import Principal
from holdfast.model.uris import encode_path
from holdfast.store.database import Tx
from holdfast.store.tables.tree import blobs, contents, nodes, unprocessed
from holdfast.store.tables.tree.contents import Change
from holdfast.store.tables.tree.nodes import NewNode, Node

Action = Literal["add", "update", "none"]


class _Folder(NamedTuple):
    """The folder of a skill while its files are stored."""

    root: str
    path: str
    nodes: dict[str, Node]
    """What is in it, by path."""


def store(
    tx: Tx, principal: Principal, context: CallContext, root: SkillRoot, name: str, files: list[NewFile], meta: str
) -> Action:
    """Make the folder of a skill have exactly these files. Expects that the root is locked."""
    path = encode_path([name])
    top = nodes.find(tx, root.root, path)
    if top is not None and not top.is_folder:
        uri = root.uri_of(name)
        raise AlreadyExistsError(f"{uri} is a file; remove it, or use another name", resource=uri, type="file")
    if top is None:
        changes.insert_folder(tx, context, root.root, path, meta)
    elif meta not in {top.meta, "{}"}:
        nodes.set_meta(tx, top.node_id, meta)
    existing = {} if top is None else {node.path: node for node in nodes.walk(tx, root.root, path)}
    folder = _Folder(root.root, path, existing)
    is_changed = _remove_others(tx, context, folder, files)
    blobs.insert_all(tx, [file.data for file in files if file.data is not None and not _has(folder, file)])
    written = [node_id for file in files if (node_id := _write(tx, principal, context, folder, file)) is not None]
    if top is None or is_changed or written:
        changed = {
            (root.root, ""),
            (root.root, path),
            *((root.root, nodes.parent_of(f"{path}/{f.path}")) for f in files),
        }
        changes.note_changes(tx, context, sorted(changed), written)
    if top is None:
        return "add"
    return "update" if is_changed or written else "none"


def _remove_others(tx: Tx, context: CallContext, folder: _Folder, files: list[NewFile]) -> bool:
    """Remove what the skill does not have any more. Return whether there was anything."""
    kept = {f"{folder.path}/{file.path}" for file in files}
    folders = {folder.path, *(parent for path in kept for parent in _folders_above(path))}
    removal = context.ids.log_id()
    removed: list[str] = []
    for path, node in sorted(folder.nodes.items()):
        if removed and path.startswith(f"{removed[-1]}/"):
            del folder.nodes[path]
        elif path not in (folders if node.is_folder else kept):
            nodes.remove(tx, node, removal, context.now)
            unprocessed.add(tx, [node.node_id])  # its documents are deleted
            removed.append(path)
            del folder.nodes[path]
    return bool(removed)


def _has(folder: _Folder, file: NewFile) -> bool:
    """Whether the folder has a file with these bytes."""
    node = folder.nodes.get(f"{folder.path}/{file.path}")
    return node is not None and node.blob == file.hash


def _write(tx: Tx, principal: Principal, context: CallContext, folder: _Folder, file: NewFile) -> int | None:
    """Store a file. Return its node, or None if it has these bytes already."""
    path = f"{folder.path}/{file.path}"
    if _has(folder, file):
        return None
    node = folder.nodes.get(path)
    for parent in _folders_above(path):
        if parent != folder.path and parent not in folder.nodes:
            changes.insert_folder(tx, context, folder.root, parent)
            folder.nodes[parent] = _found(tx, folder.root, parent)
    if node is None:
        node_id = context.ids.log_id()
        new = NewNode(node_id=node_id, root=folder.root, path=path, name=changes.name_of(path), is_folder=False)
        nodes.insert(tx, new, context.now)
        _add_version(tx, principal, context, node_id, 1, "add", file)
        return node_id
    version = contents.last_version(tx, node.node_id) + 1
    _add_version(tx, principal, context, node.node_id, version, "replace", file)
    return node.node_id


def _add_version(
    tx: Tx, principal: Principal, context: CallContext, node_id: int, version: int, change: Change, file: NewFile
) -> None:
    content = changes.new_content(
        context, node_id, version, principal.user_id, change, file.hash, file.size, file.media_type
    )
    contents.insert(tx, content)
    nodes.set_content(tx, node_id, content.content_id, context.now)


def _folders_above(path: str) -> list[str]:
    """Return the paths of the folders that a path is in, the outermost first."""
    names = path.split("/")
    return ["/".join(names[:depth]) for depth in range(1, len(names))]


def _found(tx: Tx, root: str, path: str) -> Node:
    node = nodes.find(tx, root, path)
    assert node is not None  # noqa: S101 - it was inserted before
    return node
