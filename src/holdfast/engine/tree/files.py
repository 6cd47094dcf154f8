"""Listing and reading the files of the `viking://` tree."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.gate.streams import as_result, response_bytes
from holdfast.engine.tree import listing, mounts
from holdfast.engine.tree.history import find_with_removed
from holdfast.engine.tree.listing import STAT
from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.nodes import File, Folder, Node
from holdfast.engine.tree.places import find_place
from holdfast.engine.tree.reading import Selection
from holdfast.engine.tree.stored_nodes import version_file
from holdfast.engine.tree.summaries import read_abstract, read_overview
from holdfast.engine.tree.text_pages import text_page
from holdfast.errors import FailedPreconditionError, NotFoundError
from holdfast.model.identity import Principal
from holdfast.model.tree.files import FileEntry, FilePage
from holdfast.model.uris import parse_uri, part_of
from holdfast.ops.tree.files import ListFiles, ReadAbstract, ReadFile, ReadOverview, ShowTree, StatFile
from holdfast.store import read_memory
from holdfast.store.database import Tx


def _list(tx: Tx, principal: Principal, op: ListFiles, names: Names, context: CallContext) -> FilePage:
    folder = mounts.require_folder(tx, principal, op.uri, names)
    return _page(folder, op, listing.walk(folder, op), response_bytes(context))


def _tree(tx: Tx, principal: Principal, op: ShowTree, names: Names, context: CallContext) -> FilePage:
    folder = mounts.require_folder(tx, principal, op.uri, names)
    return _page(folder, op, listing.walk(folder, op), response_bytes(context))


def _stat(tx: Tx, principal: Principal, op: StatFile, names: Names, _context: CallContext) -> FileEntry:
    node = mounts.require(tx, principal, op.uri, names)
    return listing.entry(node, node.name, STAT)


def _read(tx: Tx, principal: Principal, op: ReadFile, names: Names, _context: CallContext) -> Any:
    selection = Selection(
        offset=op.offset,
        limit=None if op.limit < 0 else op.limit,
        char_offset=op.char_offset,
        char_limit=op.char_limit,
    )

    def find_file(tx: Tx) -> File:
        return require_version(tx, principal, op, names)

    if not read_memory.is_limited():
        return find_file(tx).read(selection)
    return as_result("", None, text_page(tx, find_file, selection))


def require_version(tx: Tx, principal: Principal, op: ReadFile, names: Names) -> File:
    """Return the file to read: a version of it, or a part, if one is asked for."""
    part = part_of(op.uri)
    if op.version is None and part is None:
        return _require_file(tx, principal, op.uri, names)
    place = find_place(principal, names)
    node = None if place is None else find_with_removed(tx, place)
    if place is None or node is None or node.is_folder:
        raise NotFoundError("version of a file", op.uri)
    return version_file(tx, place.uri, node, op.version, part)


def _abstract(tx: Tx, principal: Principal, op: ReadAbstract, names: Names, _context: CallContext) -> str:
    return read_abstract(mounts.require(tx, principal, op.uri, names))


def _overview(tx: Tx, principal: Principal, op: ReadOverview, names: Names, _context: CallContext) -> str:
    return read_overview(mounts.require(tx, principal, op.uri, names))


def _require_file(tx: Tx, principal: Principal, uri: str, names: Names) -> File:
    node = mounts.require(tx, principal, uri, names)
    if isinstance(node, Folder):
        raise FailedPreconditionError(f"{uri} is a folder; list it, or read a file in it", resource=uri)
    return node


def _page(folder: Folder, op: ListFiles | ShowTree, visible: Iterator[Node], max_bytes: int) -> FilePage:
    page = islice(visible, op.offset, op.offset + op.max_entries)
    fields = listing.fields_of(op)
    prefix_length = len(folder.uri.rstrip("/")) + 1 if folder.name else len(folder.uri)
    entries: list[FileEntry | str] = []
    size = 0
    for node in page:
        # Each node is converted at once: nodes hold texts, such as the overviews of archives.
        entry = node.uri if op.simple else listing.entry(node, node.uri[prefix_length:], fields)
        size += len(entry) if isinstance(entry, str) else listing.entry_bytes(entry)
        if entries and size > max_bytes:
            return FilePage(entries, has_more=True)
        read_memory.require(min(size, max_bytes))
        entries.append(entry)
    return FilePage(entries, has_more=next(visible, None) is not None)


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
