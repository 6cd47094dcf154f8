"""Searching lines of files by a regular expression."""

from collections.abc import Iterator

import msgspec

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.gate.streams import response_bytes
from holdfast.engine.tree import mounts
from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.nodes import File
from holdfast.engine.tree.patterns.expressions import Expression, compile_expression
from holdfast.engine.tree.patterns.matches import MatchList
from holdfast.engine.tree.patterns.walking import StoredPart, walk
from holdfast.engine.tree.places import find_place
from holdfast.engine.tree.stored_texts import is_text
from holdfast.engine.tree.text_pages import read_pieces
from holdfast.errors import FailedPreconditionError
from holdfast.model.identity import Principal
from holdfast.model.tree.patterns import GrepResult
from holdfast.model.uris import build_uri, parse_uri
from holdfast.ops.tree.patterns import Grep
from holdfast.store import read_memory
from holdfast.store.database import Tx
from holdfast.store.tables.tree import blobs, text_files
from holdfast.store.tables.tree.text_files import TextFile

PAGE_FILES = 500
BATCH_BYTES = 1024 * 1024
WHOLE_FILE_BYTES = 16 * 1024 * 1024
"""A larger file is searched piece by piece. The context of a match ends at the piece."""
BINARY_CHECK_BYTES = 8_000

_decode_tags = msgspec.json.Decoder(list[str]).decode


def _grep(
    tx: Tx, principal: Principal, op: Grep, checked: tuple[Names, Names | None, Expression], context: CallContext
) -> GrepResult:
    names, excluded, expression = checked
    node = mounts.require(tx, principal, op.uri, names)
    excluded_uri = None if excluded is None else _canonical(principal, excluded)
    found = MatchList(op, expression, excluded_uri, response_bytes(context))
    place = find_place(principal, names)
    if isinstance(node, File):
        stored = None if place is None else text_files.find(tx, place.root, place.path)
        if stored is not None and place is not None:
            _search_stored(tx, found, place.mount_uri, [stored])
        else:
            _search_view(found, node)
        return found.result()
    for part in walk(tx, principal, names, node, op.level_limit):
        if found.is_full or not found.visit():
            break
        if isinstance(part, StoredPart):
            _search_part(tx, found, part)
        elif isinstance(part, File) and not found.is_excluded(part.uri) and not found.tags:
            _search_view(found, part)
    return found.result()


def _search_part(tx: Tx, found: MatchList, part: StoredPart) -> None:
    """Search the files of a stored folder, in the order of their paths."""
    after = ""
    levels_above = part.path.count("/") + 1 if part.path else 0
    while not found.is_full and (page := text_files.list_below(tx, part.root, part.path, after, PAGE_FILES)):
        after = page[-1].path
        files = [
            file
            for file in page
            if file.path.count("/") + 1 - levels_above <= part.depth
            and not found.is_excluded(f"{part.mount_uri}/{file.path}")
            and (not found.tags or found.tags.issubset(_decode_tags(file.tags)))
        ]
        _search_stored(tx, found, part.mount_uri, files)


def _search_stored(tx: Tx, found: MatchList, mount_uri: str, files: list[TextFile]) -> None:
    batch: list[TextFile] = []
    size = 0
    limit = min(BATCH_BYTES, read_memory.page_bytes())
    for file in [*files, None]:
        if batch and (file is None or size + file.size > limit):
            _search_batch(tx, found, mount_uri, batch)
            batch, size = [], 0
        if found.is_full or file is None:
            return
        if _hash_of(file) is None:
            continue
        if file.size > blobs.CHUNK_BYTES:
            _search_large(tx, found, mount_uri, file)
        else:
            batch.append(file)
            size += file.size


def _search_batch(tx: Tx, found: MatchList, mount_uri: str, batch: list[TextFile]) -> None:
    read_memory.require(max(file.size for file in batch))
    by_hash = blobs.read_many(tx, [digest for file in batch if (digest := _hash_of(file))])
    for file in batch:
        data = by_hash.get(_hash_of(file) or "")
        if data is not None and not found.is_full:
            _search_bytes(found, mount_uri, file, iter([data]))


def _search_large(tx: Tx, found: MatchList, mount_uri: str, file: TextFile) -> None:
    digest = _hash_of(file) or ""
    if file.size <= WHOLE_FILE_BYTES:
        read_memory.require(file.size)
        pieces = iter([blobs.read(tx, digest)])
    else:
        read_memory.require(2 * blobs.CHUNK_BYTES)
        pieces = blobs.read_chunks(tx, digest)
    _search_bytes(found, mount_uri, file, pieces)


def _search_bytes(found: MatchList, mount_uri: str, file: TextFile, pieces: Iterator[bytes]) -> None:
    tags = _decode_tags(file.tags) if found.include_tags else []
    found.search(f"{mount_uri}/{file.path}", _if_text(pieces), tags)


def _if_text(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces of a file, unless it is binary."""
    first = next(pieces, b"")
    if b"\0" in first[:BINARY_CHECK_BYTES]:
        return
    yield first
    yield from pieces


def _search_view(found: MatchList, file: File) -> None:
    try:
        found.search(file.uri, (piece.encode() for piece in read_pieces(file)), file.tags if found.include_tags else [])
    except FailedPreconditionError:  # it has no text
        return


def _hash_of(file: TextFile) -> str | None:
    return file.text_blob or (file.blob if is_text(file.media_type) else None)


def _canonical(principal: Principal, names: Names) -> str:
    place = find_place(principal, names)
    return build_uri(name or principal.user_id for name in names) if place is None else place.uri


def _check(_context: CallContext, op: Grep) -> tuple[Names, Names | None, Expression]:
    excluded = parse_uri(op.exclude_uri) if op.exclude_uri else None
    return parse_uri(op.uri), excluded, compile_expression(op.pattern, ignore_case=op.case_insensitive)


HANDLERS: dict[type, OperationHandler] = {Grep: OperationHandler(_grep, check=_check)}
