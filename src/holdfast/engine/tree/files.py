"""Listing and reading the files of the `viking://` tree."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.gate.streams import as_result, response_bytes
from holdfast.engine.tree import mounts
from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.nodes import File, Folder, Node
from holdfast.engine.tree.reading import Selection
from holdfast.engine.tree.text_pages import text_page
from holdfast.errors import FailedPreconditionError, InvalidUriError, NotFoundError
from holdfast.model.files import ABSTRACT, OVERVIEW, FileEntry, FilePage
from holdfast.model.identity import Principal
from holdfast.model.uris import parse_uri
from holdfast.ops.files import ListFiles, ReadAbstract, ReadFile, ReadOverview, ShowTree, StatFile
from holdfast.store import read_memory
from holdfast.store.database import Tx
from holdfast.store.timestamps import from_micros

MAX_DEPTH = 100
SESSION_DEPTH = 4
"""The number of names in the path of a session: `user/{owner}/sessions/{id}`."""
_OVERHEAD_BYTES = 150
"""The approximate size of an entry in a response, without its texts."""


def _list(tx: Tx, principal: Principal, op: ListFiles, names: Names, context: CallContext) -> FilePage:
    folder = _require_folder(tx, principal, op.uri, names)
    return _page(folder, op, MAX_DEPTH if op.recursive else 1, response_bytes(context))


def _tree(tx: Tx, principal: Principal, op: ShowTree, names: Names, context: CallContext) -> FilePage:
    return _page(_require_folder(tx, principal, op.uri, names), op, op.level_limit, response_bytes(context))


def _stat(tx: Tx, principal: Principal, op: StatFile, names: Names, _context: CallContext) -> FileEntry:
    node = _require_node(tx, principal, op.uri, names)
    return _entry(node, node.name, None)


def _read(tx: Tx, principal: Principal, op: ReadFile, names: Names, _context: CallContext) -> Any:
    selection = Selection(
        offset=op.offset,
        limit=None if op.limit < 0 else op.limit,
        char_offset=op.char_offset,
        char_limit=op.char_limit,
    )
    if not read_memory.is_limited():
        return _require_file(tx, principal, op.uri, names).read(selection)
    return as_result("", None, text_page(tx, lambda tx: _require_file(tx, principal, op.uri, names), selection))


def _abstract(tx: Tx, principal: Principal, op: ReadAbstract, names: Names, _context: CallContext) -> str:
    return _read_summary(tx, principal, op.uri, names, ABSTRACT)


def _overview(tx: Tx, principal: Principal, op: ReadOverview, names: Names, _context: CallContext) -> str:
    return _read_summary(tx, principal, op.uri, names, OVERVIEW)


def _read_summary(tx: Tx, principal: Principal, uri: str, names: Names, file_name: str) -> str:
    node = _require_node(tx, principal, uri, names)
    file = node.child(file_name) if isinstance(node, Folder) else None
    if not isinstance(file, File):
        raise NotFoundError("file", uri)
    return file.read(Selection())


def _require_node(tx: Tx, principal: Principal, uri: str, names: Names) -> Node:
    node = mounts.find(tx, principal, names)
    if node is not None:
        return node
    scopes = mounts.scopes()
    if names[0] not in scopes:
        allowed = ", ".join(scopes)
        raise InvalidUriError(uri, f"begins with {names[0]!r}, which is not a scope; use one of {allowed}")
    error = NotFoundError("file", uri)
    is_of_another = names[0] == mounts.USERS and names[1:2] not in {(), ("",), (principal.user_id,)}
    error.denies_access = is_of_another and mounts.find(tx, principal, names[:SESSION_DEPTH]) is None
    raise error


def _require_file(tx: Tx, principal: Principal, uri: str, names: Names) -> File:
    node = _require_node(tx, principal, uri, names)
    if isinstance(node, Folder):
        raise FailedPreconditionError(f"{uri} is a folder; list it, or read a file in it", resource=uri)
    return node


def _require_folder(tx: Tx, principal: Principal, uri: str, names: Names) -> Folder:
    node = _require_node(tx, principal, uri, names)
    if isinstance(node, File):
        raise FailedPreconditionError(f"{uri} is a file; read it, or list its folder", resource=uri)
    return node


def _page(folder: Folder, op: ListFiles | ShowTree, depth: int, max_bytes: int) -> FilePage:
    visible = (node for node in _walk(folder, depth) if op.show_all_hidden or not node.name.startswith("."))
    page = islice(visible, op.offset, op.offset + op.max_entries)
    abs_limit = op.abs_limit if op.output == "agent" else None
    prefix_length = len(folder.uri.rstrip("/")) + 1 if folder.name else len(folder.uri)
    entries: list[FileEntry | str] = []
    size = 0
    for node in page:
        # Each node is converted at once: nodes hold texts, such as the overviews of archives.
        entry = node.uri if op.simple else _entry(node, node.uri[prefix_length:], abs_limit)
        size += len(entry) if isinstance(entry, str) else _entry_bytes(entry)
        if entries and size > max_bytes:
            return FilePage(entries, has_more=True)
        read_memory.require(min(size, max_bytes))
        entries.append(entry)
    return FilePage(entries, has_more=next(visible, None) is not None)


def _entry_bytes(entry: FileEntry) -> int:
    """The approximate size of an entry in a response."""
    return _OVERHEAD_BYTES + len(entry.name) + len(entry.uri) + len(entry.rel_path) + 3 * len(entry.abstract or "")


def _walk(folder: Folder, depth: int) -> Iterator[Node]:
    """Yield the nodes below a folder in depth-first order: each folder before its content."""
    for node in folder.children():
        yield node
        if isinstance(node, Folder) and depth > 1:
            yield from _walk(node, depth - 1)


def _entry(node: Node, rel_path: str, abs_limit: int | None) -> FileEntry:
    is_dir = isinstance(node, Folder)
    return FileEntry(
        name=node.name,
        uri=node.uri,
        rel_path=rel_path,
        size=node.size if isinstance(node, File) else 0,
        mode=node.mode,
        is_dir=is_dir,
        mod_time=from_micros(node.changed_at),
        abstract=None if abs_limit is None else node.abstract()[:abs_limit] if isinstance(node, Folder) else "",
    )


def _parse_uri(_context: CallContext, op: Any) -> Names:
    return parse_uri(op.uri)


HANDLERS: dict[type, OperationHandler] = {
    ListFiles: OperationHandler(_list, check=_parse_uri),
    ShowTree: OperationHandler(_tree, check=_parse_uri),
    StatFile: OperationHandler(_stat, check=_parse_uri),
    ReadFile: OperationHandler(_read, check=_parse_uri),
    ReadAbstract: OperationHandler(_abstract, check=_parse_uri),
    ReadOverview: OperationHandler(_overview, check=_parse_uri),
}
