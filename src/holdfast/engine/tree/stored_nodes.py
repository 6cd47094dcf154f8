"""The stored part of the tree: folders and files that are built from rows of `nodes`."""

from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from holdfast.engine.tree import stored_texts
from holdfast.engine.tree.nodes import File, Folder, Node, text_file
from holdfast.engine.tree.reading import Selection, select_from_lines, select_from_text
from holdfast.model.tree.files import ABSTRACT, OVERVIEW, RELATIONS, SortKey
from holdfast.model.uris import encode_path
from holdfast.store.database import Tx
from holdfast.store.tables.tree import contents, nodes
from holdfast.store.tables.tree.nodes import Node as StoredNode

PAGE_SIZE = 500
_decode_tags = msgspec.json.Decoder(list[str]).decode


RelationsReader = Callable[[str], str]
"""Returns what `.relations.json` of a folder shows, or an empty text."""


def no_relations(_uri: str) -> str:
    return ""


def stored_folder(tx: Tx, root: str, uri: str, relations: RelationsReader = no_relations) -> Folder:
    """Return the top of a root as a folder."""
    name = uri.rpartition("/")[2]
    return _folder(tx, root, "", name, uri, nodes.last_change(tx, root), None, relations)


def build_node(tx: Tx, mount_uri: str, node: StoredNode, relations: RelationsReader = no_relations) -> Node:
    """Return a stored node as a node of the tree."""
    uri = f"{mount_uri}/{node.path}"
    if node.is_folder:
        return _folder(tx, node.root, node.path, node.name, uri, node.changed_at, node, relations)
    return File(
        name=node.name,
        uri=uri,
        changed_at=node.changed_at,
        read=lambda selection: _read(tx, uri, node, selection),
        size=node.size,
        writable=True,
        abstract=lambda: node.abstract,
        overview=partial(_overview, tx, node.content_id),
        version=node.version,
        media_type=node.media_type,
        tags=_decode_tags(node.tags),
    )


def _folder(
    tx: Tx,
    root: str,
    path: str,
    name: str,
    uri: str,
    changed_at: int,
    node: StoredNode | None,
    relations: RelationsReader,
) -> Folder:
    mount_uri = uri[: len(uri) - len(path) - 1] if path else uri
    views: dict[str, Callable[[], str]] = {RELATIONS: partial(relations, uri)}
    if node is not None and node.content_id is not None:
        views |= {ABSTRACT: lambda: node.abstract, OVERVIEW: partial(_overview, tx, node.content_id)}

    def children() -> Iterator[Node]:
        for view, read_text in sorted(views.items()):
            if (text := read_text()) or view != RELATIONS:
                yield text_file(uri, view, changed_at, text)
        after = ""
        while page := nodes.children(tx, root, path, after, PAGE_SIZE):
            yield from (build_node(tx, mount_uri, child, relations) for child in page)
            after = page[-1].name

    def sorted_children(sort_by: SortKey, descending: bool) -> Iterator[Node]:
        offset = 0
        while page := nodes.sorted_children(
            tx, root, path, sort_by, descending=descending, offset=offset, limit=PAGE_SIZE
        ):
            yield from (build_node(tx, mount_uri, child, relations) for child in page)
            offset += len(page)

    def child(child_name: str) -> Node | None:
        if child_name in views:
            text = views[child_name]()
            return text_file(uri, child_name, changed_at, text) if text or child_name != RELATIONS else None
        found = nodes.find(tx, root, f"{path}/{encode_path([child_name])}" if path else encode_path([child_name]))
        return None if found is None else build_node(tx, mount_uri, found, relations)

    return Folder(
        name=name,
        uri=uri,
        changed_at=changed_at,
        children=children,
        child=child,
        abstract=lambda: node.abstract if node else "",
        overview=partial(_overview, tx, node.content_id) if node else lambda: "",
        writable=True,
        count=lambda: nodes.count_children(tx, root, path),
        sorted_children=sorted_children,
        tags=_decode_tags(node.tags) if node else [],
    )


def _overview(tx: Tx, content_id: int | None) -> str:
    content = None if content_id is None else contents.find(tx, content_id)
    return "" if content is None else content.overview


def _read(tx: Tx, uri: str, node: StoredNode, selection: Selection) -> str:
    content = stored_texts.require_content(tx, uri, node)
    return select_from_lines(uri, stored_texts.lines(tx, uri, content, selection.offset), selection)


def version_file(tx: Tx, uri: str, node: StoredNode, version: int | None, part: int | None) -> File:
    """Return a version of a file, or the current one, or one part of it."""
    current = stored_texts.require_content(tx, uri, node) if version is None else None
    content = current or stored_texts.require_version(tx, uri, node, version or 0)

    def read(selection: Selection) -> str:
        if part is None:
            return select_from_lines(uri, stored_texts.lines(tx, uri, content, selection.offset), selection)
        return select_from_text(uri, stored_texts.part_text(tx, uri, content, part), selection)

    return File(
        name=node.name, uri=uri, changed_at=content.created_at, read=read, size=content.size, version=content.version
    )
