"""Stores files with their documents in one transaction, for tests and measurements of searches."""

from collections.abc import Sequence

import msgspec

from holdfast.engine.recall.content_documents import IndexedPart, analyse_parts, write_documents
from holdfast.model.tree.files import FilePart
from holdfast.store.database import Tx
from holdfast.store.tables.tree import blobs, contents, nodes, roots
from holdfast.store.tables.tree.contents import Content
from holdfast.store.tables.tree.nodes import NewNode

SEPARATOR = "\n\n"


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file with its parts, or a folder with its overview."""

    root: str
    path: str
    parts: Sequence[str] = ()
    """The text of each part. A folder has none."""
    titles: Sequence[str] = ()
    abstract: str = ""
    overview: str = ""
    kind: str = "resource"
    tags: Sequence[str] = ()
    owner_id: str | None = None
    """Who owns the documents, if that does not follow from the root."""
    extracted: bool = False
    """Whether the text was extracted from other bytes."""


def store_file(tx: Tx, file: StoredFile, node_id: int, now: int, content_id: int | None = None) -> int:
    """Store a file, or another version of one that exists. Return its content."""
    content_id = content_id or node_id
    text = SEPARATOR.join(file.parts)
    outline, start = list[FilePart](), 0
    for number, part in enumerate(file.parts):
        title = file.titles[number] if number < len(file.titles) else ""
        outline.append(FilePart(title=title, page=number + 1, start=start, end=start + len(part), abstract=""))
        start += len(part) + len(SEPARATOR)
    data = text.encode()
    is_folder = not file.parts
    digest = None if is_folder else blobs.insert(tx, b"%PDF" + data if file.extracted else data)
    text_blob = blobs.insert(tx, data) if file.extracted else None
    media_type = "application/pdf" if file.extracted else "text/markdown"
    roots.lock(tx, [file.root])
    known = nodes.find_by_id(tx, node_id)
    version = 0 if is_folder else contents.last_version(tx, node_id) + 1
    change: contents.Change = "summary" if is_folder else "create"
    encoded = contents.encode_parts(outline)
    contents.insert(
        tx,
        Content(
            content_id,
            node_id,
            version,
            now,
            "alice",
            change,
            digest,
            len(data),
            media_type,
            "done",
            text_blob,
            encoded,
            file.abstract,
            file.overview,
            None,
        ),
    )
    if known is None:
        new = NewNode(
            node_id=node_id,
            root=file.root,
            path=file.path,
            name=file.path.rpartition("/")[2],
            is_folder=is_folder,
            content_id=content_id,
            tags=msgspec.json.encode(list(file.tags)).decode(),
        )
        nodes.insert(tx, new, now)
    else:
        nodes.set_content(tx, node_id, content_id, now)
    overview = f"{file.path}\n{file.abstract}\n{file.overview}"
    titled = [f"{part.title}\n{text}" for part, text in zip(outline, file.parts, strict=True)]
    indexed = [IndexedPart(number, each) for number, each in enumerate([overview, *titled])]
    found = analyse_parts(file.kind, content_id, now, file.tags, indexed)
    write_documents(tx, file.owner_id or roots.owner_of(file.root), content_id, found)
    return content_id
