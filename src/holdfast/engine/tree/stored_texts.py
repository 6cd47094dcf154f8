"""The texts of stored files. A text is decoded chunk by chunk, so that a file of any size can be read."""

import codecs
from collections.abc import Iterator

from holdfast.errors import DataDamagedError, FailedPreconditionError, NotFoundError
from holdfast.store.database import Tx
from holdfast.store.tables.tree import blobs, contents
from holdfast.store.tables.tree.contents import Content
from holdfast.store.tables.tree.nodes import Node

TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


def require_content(tx: Tx, uri: str, node: Node) -> Content:
    """Return the current content of a file."""
    content = None if node.content_id is None else contents.find(tx, node.content_id)
    if content is None:
        raise DataDamagedError(
            f"the content of {uri} is missing; restore a version of it, or write it again", table="contents", row=uri
        )
    return content


def require_version(tx: Tx, uri: str, node: Node, version: int) -> Content:
    content = contents.find_version(tx, node.node_id, version)
    if content is None:
        raise NotFoundError("version", f"{uri} version {version}")
    return content


def is_text(media_type: str) -> bool:
    return media_type.startswith(TEXT_TYPES)


def text_hash(uri: str, content: Content) -> str:
    """Return the hash of the text of a file: of the file itself, or what was extracted from it."""
    digest = text_hash_or_none(content)
    if digest is None:
        reason = f": {content.error}" if content.error else "; download it"
        raise FailedPreconditionError(f"{uri} has no text ({content.media_type}){reason}", resource=uri)
    return digest


def text_hash_or_none(content: Content) -> str | None:
    return content.text_blob or (content.blob if is_text(content.media_type) else None)


def lines(tx: Tx, uri: str, content: Content, offset: int = 0) -> Iterator[str]:
    """Yield the lines of a file from a number on. Only a newline ends a line."""
    skipped, pending = 0, [""]
    for text in _decoded_chunks(tx, text_hash(uri, content)):
        first, *others = text.split("\n")
        pending.append(first)
        if not others:
            continue
        found = ["".join(pending), *others]
        pending = [found.pop()]
        for line in found:
            if skipped >= offset:
                yield f"{line}\n"
            else:
                skipped += 1
    last = "".join(pending)
    if last and skipped >= offset:
        yield last


def whole(tx: Tx, uri: str, content: Content) -> str:
    return "".join(_decoded_chunks(tx, text_hash(uri, content)))


def part_text(tx: Tx, uri: str, content: Content, number: int) -> str:
    """Return the text of a part, counted from 1."""
    parts = content.parts
    if not 1 <= number <= len(parts):
        raise NotFoundError("part", f"{uri}#{number}")
    part = parts[number - 1]
    return whole(tx, uri, content)[part.start : part.end]


def _decoded_chunks(tx: Tx, digest: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in blobs.read_chunks(tx, digest):
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)
