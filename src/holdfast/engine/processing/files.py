"""Processing files: read the bytes, parse them in a child process, and write text, parts, summaries and documents.

Nothing is parsed or analysed inside a transaction. The one that writes the results checks that the file still has the
content that was read.
"""

from collections.abc import Callable, Sequence
from typing import TypeGuard

import msgspec

from holdfast.computing.documents import FileToParse, ParsedFile, parse_file
from holdfast.computing.job import Job
from holdfast.documents import MAX_FILE_BYTES
from holdfast.engine.processing.kinds import kind_of
from holdfast.engine.processing.node_meta import read_meta
from holdfast.engine.recall.content_documents import IndexedPart, analyse_parts, write_documents
from holdfast.engine.tree import stored_texts
from holdfast.model.tree.files import FilePart
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.documents import NewDocument
from holdfast.store.tables.tree import blobs, contents, nodes, roots, unprocessed
from holdfast.store.tables.tree.contents import Content
from holdfast.store.tables.tree.nodes import Node

Compute = Callable[[Job[FileToParse, ParsedFile], FileToParse], ParsedFile]
"""Runs a job, as `ClaimedTask.compute` does."""


class FileToProcess(msgspec.Struct, frozen=True):
    """A stored file with the content that is to be processed."""

    node: Node
    content: Content
    data: bytes = b""
    """The bytes of the file, or its text if it was parsed before."""


class ProcessedFile(msgspec.Struct, frozen=True):
    """What processing has made of a file. It is not stored yet."""

    file: FileToProcess
    parsed: ParsedFile | None
    """None if the content was parsed before: then only its documents are written."""
    documents: list[NewDocument]

    @property
    def error(self) -> str:
        return self.parsed.error if self.parsed is not None else ""


_decode_tags = msgspec.json.Decoder(list[str]).decode


def read_file(tx: Tx, node: Node) -> FileToProcess | None:
    """Read a file that has something to process. None if it needs nothing."""
    content = None if node.content_id is None else contents.find(tx, node.content_id)
    if content is None or content.blob is None:
        return None
    if content.state == "done":
        if documents.owner_of_content(tx, content.content_id) == roots.owner_of(node.root):
            return None
        text = stored_texts.text_hash_or_none(content)
        return FileToProcess(node, content, blobs.read(tx, text) if text else b"")
    is_readable = content.size <= MAX_FILE_BYTES
    return FileToProcess(node, content, blobs.read(tx, content.blob) if is_readable else b"")


def process_file(compute: Compute, file: FileToProcess) -> ProcessedFile:
    """Parse a file, unless that was done before, and analyse its parts. Uses no database."""
    node, content = file.node, file.content
    if content.state == "done":
        text = file.data.decode(errors="replace")
        return ProcessedFile(file, None, _documents(node, content, text, content.parts, content.abstract))
    if content.size > MAX_FILE_BYTES:
        problem = f"{node.name} has {content.size:,} bytes, and at most {MAX_FILE_BYTES:,} are read; split it"
        return ProcessedFile(file, ParsedFile(error=problem), [])
    meta = read_meta(node)
    parsed = parse_file(compute, FileToParse(node.name, file.data, meta.reason, meta.instruction))
    if parsed.error:
        return ProcessedFile(file, parsed, [])
    new_documents = _documents(node, content, parsed.text, parsed.outline, parsed.abstract)
    return ProcessedFile(file, parsed, new_documents)


def _documents(node: Node, content: Content, text: str, parts: Sequence[FilePart], abstract: str) -> list[NewDocument]:
    if len(parts) <= 1:  # a file of one part is one document
        found = [overview_part(node, abstract, text)]
    else:
        # Without the abstracts of the parts, so that a part is found before its document.
        titles = "\n".join(dict.fromkeys(part.title for part in parts))
        found = [overview_part(node, abstract, titles)]
        found += [
            IndexedPart(number, f"{part.title}\n{text[part.start : part.end]}") for number, part in enumerate(parts, 1)
        ]
    return analyse_parts(kind_of(node.root), content.content_id, content.created_at, _decode_tags(node.tags), found)


def overview_part(node: Node, abstract: str, overview: str) -> IndexedPart:
    """Return the document with the name and the overview of a file or a folder. Its number is 0."""
    return IndexedPart(0, f"{node.name}\n{abstract}\n{overview}")


def write_files(tx: Tx, processed: Sequence[ProcessedFile]) -> None:
    """Store what processing has made of files, whose roots are held.

    A file that has another content by now, or was removed or moved to another root, stays registered.
    """
    found = [(each, node) for each in processed if (node := _lock_current(tx, each.file)) is not None]
    blobs.insert_all(tx, [each.parsed.text.encode() for each, _ in found if _has_own_text(each.parsed)])
    outdated = {node.node_id: contents.indexed_before(tx, node.node_id, node.content_id or 0) for _, node in found}
    changed = [each.file.content.content_id for each, _ in found] + [each for ids in outdated.values() for each in ids]
    documents.lock_owners(tx, changed, {roots.owner_of(node.root) for _, node in found})
    for each, node in found:
        for content_id in outdated[node.node_id]:
            documents.delete_of_content(tx, content_id)
        _write_file(tx, each, node)


def _lock_current(tx: Tx, file: FileToProcess) -> Node | None:
    """Lock a file. None if it is not as it was read."""
    current = nodes.lock_content(tx, file.node.node_id)
    if current is None or (current.content_id, current.root) != (file.content.content_id, file.node.root):
        return None
    return current if current.removed_at is None else None


def _has_own_text(parsed: ParsedFile | None) -> TypeGuard[ParsedFile]:
    """Whether a text was extracted that is not the content of the file itself."""
    return parsed is not None and not parsed.error and not parsed.is_content


def _write_file(tx: Tx, processed: ProcessedFile, node: Node) -> None:
    content, parsed = processed.file.content, processed.parsed
    if parsed is not None and parsed.error:
        contents.set_failed(tx, content.content_id, parsed.error)
    elif parsed is not None:
        contents.set_processed(
            tx,
            content.content_id,
            media_type=parsed.media_type or content.media_type,
            text_blob=blobs.hash_of(parsed.text.encode()) if _has_own_text(parsed) else None,
            parts=parsed.outline,
            abstract=parsed.abstract,
            overview=parsed.overview,
        )
    write_documents(tx, roots.owner_of(node.root), content.content_id, processed.documents)
    unprocessed.delete(tx, [node.node_id])
    register_parent(tx, node)


def register_parent(tx: Tx, node: Node) -> None:
    """Let the folder of a node be summarised again. The task that stages nodes summarises their folders itself."""
    if roots.is_staging(node.root):
        return
    parent = nodes.find(tx, node.root, node.parent) if node.parent else None
    if parent is not None:
        unprocessed.add(tx, [parent.node_id], unprocessed.FOLDER_DELAY)
