"""What an export reads of a subtree: its nodes with tags, notes and versions, page by page, and its relations."""

from collections.abc import Sequence

import msgspec

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.processing.node_meta import read_meta
from holdfast.engine.tree import mounts
from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.places import Place, find_place
from holdfast.errors import InvalidArgumentError, NotFoundError, TooLargeError
from holdfast.model.identity import Principal
from holdfast.model.tree.packs import (
    MAX_RELATIONS,
    MAX_VERSIONS_OF_FILE,
    PackNode,
    PackNodes,
    PackRelation,
    PackVersion,
)
from holdfast.model.uris import build_uri, parse_uri
from holdfast.ops.tree.packs import ListPackNodes
from holdfast.store.database import Tx
from holdfast.store.tables.tree import contents, nodes, relations
from holdfast.store.tables.tree.contents import Content
from holdfast.store.tables.tree.nodes import Node
from holdfast.store.timestamps import from_micros

MAX_PAGE_BYTES = 1_000_000
"""A page ends when it has about so many bytes."""
MAX_RELATION_CHARS = 16_000_000
"""The limit for the reasons of all relations."""
NODE_BYTES, VERSION_BYTES = 200, 300
_decode_tags = msgspec.json.Decoder(list[str]).decode


def _list(tx: Tx, principal: Principal, op: ListPackNodes, names: Names, context: CallContext) -> PackNodes:
    place = _require_stored(tx, principal, op.uri, names)
    top = nodes.find(tx, place.root, place.path) if place.path else None
    if place.path and top is None:
        raise NotFoundError("file", op.uri)
    if top is not None and not top.is_folder:
        found, is_complete = [top], True
    else:
        after = "/".join(filter(None, (place.path, op.after))) if op.after else ""
        found = nodes.subtree(tx, place.root, place.path, after, op.limit + 1)
        is_complete = len(found) <= op.limit
        found = found[: op.limit]
        if top is not None and not op.after:
            found = [top, *found]
    listed = _pack_nodes(tx, place, found, all_versions=op.versions)
    last = found[len(listed) - 1].path if listed else ""
    has_more = len(listed) < len(found) or not is_complete
    return PackNodes(
        uri=place.uri,
        name=place.name,
        is_folder=top is None or bool(top.is_folder),
        listed_at=from_micros(context.now),
        nodes=listed,
        relations=[] if op.after else _relations(tx, principal, place, top),
        next_after=_relative(place, last) if has_more else None,
    )


def _require_stored(tx: Tx, principal: Principal, uri: str, names: Names) -> Place:
    place = find_place(principal, names)
    if place is not None:
        return place
    if not names:
        raise InvalidArgumentError("uri", "is the root of the tree; make a backup, or name a folder in it")
    mounts.require(tx, principal, uri, names)  # raises an error if there is nothing that the caller may read
    folders = mounts.writable_folders(principal)
    raise InvalidArgumentError("uri", f"{uri} is a view of stored data; a pack has files of {folders}")


def _relative(place: Place, path: str) -> str:
    """Return a path as it is in the pack: below the exported folder, or the name of the exported file."""
    return path[len(place.path) + 1 :] if place.path else path


def _pack_nodes(tx: Tx, place: Place, found: Sequence[Node], *, all_versions: bool) -> list[PackNode]:
    """Return nodes with their versions, up to the limit of a page."""
    current = _current_contents(tx, found)
    listed: list[PackNode] = []
    size = 0
    for node in found:
        if size >= MAX_PAGE_BYTES and listed[-1].path:  # the next page begins after a path, which the top has not
            break
        versions: list[Content] = []
        if not node.is_folder and node.content_id in current:
            versions = [current[node.content_id]]
            if all_versions and node.version > 1:
                versions = contents.versions(tx, node.node_id, None, MAX_VERSIONS_OF_FILE)[::-1]
        size += NODE_BYTES + len(node.path) + len(node.tags) + len(node.meta) + VERSION_BYTES * len(versions)
        notes = read_meta(node)
        is_file_itself = not node.is_folder and node.path == place.path
        listed.append(
            PackNode(
                path=node.path.rpartition("/")[2] if is_file_itself else _relative(place, node.path),
                is_folder=bool(node.is_folder),
                tags=_decode_tags(node.tags),
                description=notes.description,
                reason=notes.reason,
                instruction=notes.instruction,
                versions=[_version(each) for each in versions],
            )
        )
    return listed


def _current_contents(tx: Tx, found: Sequence[Node]) -> dict[int | None, Content]:
    wanted = [node.content_id for node in found if not node.is_folder and node.content_id is not None]
    read: dict[int | None, Content] = {}
    for first in range(0, len(wanted), nodes.MAX_IDS):
        read |= {each.content_id: each for each in contents.read(tx, wanted[first : first + nodes.MAX_IDS])}
    return read


def _version(content: Content) -> PackVersion:
    return PackVersion(
        version=content.version,
        created_at=from_micros(content.created_at),
        author=content.author,
        change=content.change,
        size=content.size,
        sha256=content.blob or "",
        content_type=content.media_type,
    )


def _relations(tx: Tx, principal: Principal, place: Place, top: Node | None) -> list[PackRelation]:
    found = relations.list_below(tx, place.uri, MAX_RELATIONS + 1)
    if len(found) > MAX_RELATIONS or sum(len(each.reason) for each in found) > MAX_RELATION_CHARS:
        raise TooLargeError(
            f"{place.uri} has more than {MAX_RELATIONS:,} relations, or very long ones; export a part",
            limit=MAX_RELATIONS,
        )
    own = build_uri((mounts.USERS, principal.user_id))
    listed: list[PackRelation] = []
    for each in found:
        to_path = _path_in(place, top, each.to_uri)
        from_path = _path_in(place, top, each.from_uri)
        is_private = each.to_uri.startswith(build_uri((mounts.USERS, ""))) and not f"{each.to_uri}/".startswith(
            f"{own}/"
        )
        if from_path is None or (to_path is None and is_private):
            continue
        listed.append(
            PackRelation(
                from_path=from_path,
                to_path=to_path,
                to_uri="" if to_path is not None else each.to_uri,
                reason=each.reason,
                author=each.author,
                created_at=from_micros(each.created_at),
            )
        )
    return listed


def _path_in(place: Place, top: Node | None, uri: str) -> str | None:
    """Return the path of an address in the pack, or None if it lies outside."""
    if uri == place.uri:
        return "" if top is None or top.is_folder else place.path.rpartition("/")[2]
    return uri[len(place.uri) + 1 :] if uri.startswith(f"{place.uri}/") else None


def _parse_uri(_context: CallContext, op: ListPackNodes) -> Names:
    return parse_uri(op.uri)


HANDLERS: dict[type, OperationHandler] = {ListPackNodes: OperationHandler(_list, check=_parse_uri)}
