"""What all changes of stored nodes have in common: folders on the way, new versions, and what to process after."""

import mimetypes
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tree.places import Place
from holdfast.engine.tree.stored_texts import is_text
from holdfast.errors import FailedPreconditionError
from holdfast.model.uris import decode_path
from holdfast.store.database import Tx
from holdfast.store.tables.tree import blobs, contents, nodes, unprocessed
from holdfast.store.tables.tree.contents import Change, Content
from holdfast.store.tables.tree.nodes import NewNode, Node

PLAIN_TEXT = "text/plain"
NO_PARTS = "[]"
_types = mimetypes.MimeTypes()
_types.add_type("text/markdown", ".md")


def text_type_of(name: str) -> str:
    """Return the media type of a text file, from its name.

    >>> text_type_of("guide.md"), text_type_of("notes"), text_type_of("photo.png")
    ('text/markdown', 'text/plain', 'text/plain')
    """
    guessed = _types.guess_type(name, strict=False)[0] or PLAIN_TEXT
    return guessed if is_text(guessed) else PLAIN_TEXT


def ensure_folders(tx: Tx, context: CallContext, place: Place) -> None:
    """Make the missing folders above a place."""
    names = place.path.split("/")[:-1]
    for depth in range(len(names), 0, -1):
        path = "/".join(names[:depth])
        found = nodes.find(tx, place.root, path)
        if found is None:
            continue
        if not found.is_folder:
            uri = place.uri_of(path)
            raise FailedPreconditionError(
                f"{uri} is a file, so nothing can be in it; use another address", resource=uri
            )
        missing = range(depth + 1, len(names) + 1)
        break
    else:
        missing = range(1, len(names) + 1)
    for depth in missing:
        insert_folder(tx, context, place.root, "/".join(names[:depth]))


def insert_folder(tx: Tx, context: CallContext, root: str, path: str, meta: str = "{}") -> int:
    node_id = context.ids.log_id()
    name = name_of(path)
    nodes.insert(tx, NewNode(node_id=node_id, root=root, path=path, name=name, is_folder=True, meta=meta), context.now)
    return node_id


def name_of(path: str) -> str:
    """Return the decoded last name of a path."""
    return decode_path(path)[-1]


def new_content(
    context: CallContext, node_id: int, version: int, author: str, change: Change, blob: str, size: int, media_type: str
) -> Content:
    """Return a content that is not processed yet."""
    return Content(
        content_id=context.ids.log_id(),
        node_id=node_id,
        version=version,
        created_at=context.now,
        author=author,
        change=change,
        blob=blob,
        size=size,
        media_type=media_type,
        state="pending",
        text_blob=None,
        outline=NO_PARTS,
        abstract="",
        overview="",
        error=None,
    )


def add_version(
    tx: Tx, context: CallContext, node_id: int, author: str, change: Change, data: bytes, media_type: str
) -> Content:
    """Store bytes as the newest version of a file, and make it the current one."""
    version = contents.last_version(tx, node_id) + 1
    blob = blobs.insert(tx, data)
    content = new_content(context, node_id, version, author, change, blob, len(data), media_type)
    contents.insert(tx, content)
    nodes.set_content(tx, node_id, content.content_id, context.now)
    return content


def note_changes(
    tx: Tx, context: CallContext, changed: Sequence[Node | tuple[str, str]], files: Sequence[int] = ()
) -> None:
    """Let files be processed, and the folders of changed nodes be summarised again."""
    unprocessed.add(tx, files)
    places = {(each.root, each.parent) if isinstance(each, Node) else each for each in changed}
    folders = [nodes.touch(tx, root, parent, context.now) for root, parent in sorted(places)]
    unprocessed.add(tx, [node_id for node_id in folders if node_id is not None], unprocessed.FOLDER_DELAY)
    context.wake_workers()


def encode_tags(tags: Sequence[str]) -> str:
    return msgspec.json.encode(list(dict.fromkeys(tags))).decode()


def encode_meta(meta: dict[str, Any]) -> str:
    return msgspec.json.encode(meta).decode()
