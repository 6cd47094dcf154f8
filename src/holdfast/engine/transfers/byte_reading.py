"""Reading the bytes of a file: of a stored one as they are, of a view those of its text."""

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.tree import files, stored_texts
from holdfast.engine.tree.changes import text_type_of
from holdfast.engine.tree.history import find_with_removed
from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.places import Place, find_place
from holdfast.engine.tree.reading import Selection
from holdfast.errors import TooLargeError
from holdfast.model.identity import Principal
from holdfast.model.tree.uploads import FileBytes
from holdfast.model.uris import parse_uri, part_of
from holdfast.ops.tree.files import ReadFile
from holdfast.ops.tree.uploads import ReadBytes
from holdfast.store import read_memory
from holdfast.store.database import Tx
from holdfast.store.tables.tree import blobs, nodes
from holdfast.store.tables.tree.nodes import Node

MAX_VIEW_CHARS = 4_000_000
"""The longest text of a view whose bytes can be read. It is generated for each read."""


def _read(tx: Tx, principal: Principal, op: ReadBytes, names: Names, _context: CallContext) -> FileBytes:
    place = find_place(principal, names)
    node = None if place is None else _find_node(tx, place, op.version)
    if place is None or node is None or node.is_folder or part_of(op.uri) is not None:
        return _read_view(tx, principal, op, names)
    return _read_stored(tx, op, place, node)


def _find_node(tx: Tx, place: Place, version: int | None) -> Node | None:
    return nodes.find(tx, place.root, place.path) if version is None else find_with_removed(tx, place)


def _read_stored(tx: Tx, op: ReadBytes, place: Place, node: Node) -> FileBytes:
    if op.version is None:
        content = stored_texts.require_content(tx, place.uri, node)
    else:
        content = stored_texts.require_version(tx, place.uri, node, op.version)
    length = max(0, min(op.limit, content.size - op.offset))
    read_memory.require(length)
    digest = content.blob or ""
    return FileBytes(
        uri=place.uri,
        data=blobs.read_range(tx, digest, op.offset, length) if length else b"",
        offset=op.offset,
        size=content.size,
        content_type=content.media_type,
        version=content.version,
        sha256=digest,
    )


def _read_view(tx: Tx, principal: Principal, op: ReadBytes, names: Names) -> FileBytes:
    file = files.require_version(tx, principal, ReadFile(uri=op.uri, version=op.version), names)
    chars = min(MAX_VIEW_CHARS, read_memory.largest_row())
    text = file.read(Selection(char_limit=chars + 1))
    if len(text) > chars:
        read_memory.require(MAX_VIEW_CHARS)
        raise TooLargeError(
            f"{op.uri} has more than {MAX_VIEW_CHARS:,} characters, too many for its bytes; read its text in parts",
            limit=MAX_VIEW_CHARS,
        )
    data = text.encode()
    return FileBytes(
        uri=file.uri,
        data=data[op.offset : op.offset + op.limit],
        offset=op.offset,
        size=len(data),
        content_type=text_type_of(file.name),
        version=0,
        sha256="",
    )


def _parse_uri(_context: CallContext, op: ReadBytes) -> Names:
    return parse_uri(op.uri)


HANDLERS: dict[type, OperationHandler] = {ReadBytes: OperationHandler(_read, check=_parse_uri)}
