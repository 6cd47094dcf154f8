"""The tags of files and folders."""

import msgspec

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.engine.tree import changes, mounts
from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.places import Place, find_place, require_place
from holdfast.engine.tree.writing import context_type, require_node
from holdfast.errors import InvalidArgumentError, TooLargeError, short_repr
from holdfast.model.identity import Principal
from holdfast.model.tree.attributes import MAX_TAG_CHARS, MAX_TAGS, Attributes, AttributeValues, ContextType, TagsSet
from holdfast.model.uris import parse_uri
from holdfast.ops.tree.attributes import ReadAttributes, SetTags
from holdfast.store.database import Tx
from holdfast.store.tables.tree import nodes, roots

MAX_TAGGED = 20_000
"""How many files and folders get tags in one call."""
MAX_LISTED = 1_000
PAGE = 1_000

_decode = msgspec.json.Decoder(list[str]).decode


def _read(tx: Tx, principal: Principal, op: ReadAttributes, names: Names, _context: CallContext) -> Attributes:
    node = mounts.require(tx, principal, op.uri, names)
    return Attributes(uri=node.uri, context_type=_type_of(principal, names), attrs=AttributeValues(node.tags))


def _type_of(principal: Principal, names: Names) -> ContextType:
    place = find_place(principal, names)
    if place is not None:
        found: ContextType = context_type(place.root)
        return found
    return "session" if "sessions" in names else "resource"


def _set(tx: Tx, principal: Principal, op: SetTags, given: tuple[Names, list[str]], _context: CallContext) -> TagsSet:
    names, tags = given
    place = require_place(principal, op.uri, names)
    roots.lock(tx, [place.root])
    node = require_node(tx, place)
    count = nodes.count_subtree(tx, place.root, place.path) if op.recursive else 0
    if count > MAX_TAGGED:
        raise TooLargeError(
            f"{place.uri} has {count:,} files and folders; one call tags at most {MAX_TAGGED:,}, tag its folders"
        )
    tagged = [(node.path, node.tags)]
    while op.recursive and (page := nodes.tags_below(tx, place.root, place.path, tagged[-1][0], PAGE)):
        tagged += page
    changed = _apply(tx, op, place, tags, tagged)
    return TagsSet(
        uri=place.uri,
        updated_uris=[place.uri_of(path) for path in changed[:MAX_LISTED]],
        root_uri=place.mount_uri,
        context_type=context_type(place.root),
        tags=tags,
        mode=op.mode,
        success_count=len(changed),
        skipped_count=len(tagged) - len(changed),
        tags_updated=bool(changed),
    )


def _apply(tx: Tx, op: SetTags, place: Place, tags: list[str], tagged: list[tuple[str, str]]) -> list[str]:
    """Store the new tags, one statement for all nodes that get the same. Return the paths of the changed nodes."""
    by_tags: dict[str, list[str]] = {}
    for path, before in tagged:
        after = _combined(op, place, path, tags, before)
        if after != before:
            by_tags.setdefault(after, []).append(path)
    for after, paths in by_tags.items():
        nodes.set_tags_of(tx, place.root, paths, after)
    return sorted(path for paths in by_tags.values() for path in paths)


def _combined(op: SetTags, place: Place, path: str, tags: list[str], before: str) -> str:
    if op.mode == "clear":
        return changes.encode_tags([])
    if op.mode == "replace":
        return changes.encode_tags(tags)
    combined = list(dict.fromkeys([*_decode(before), *tags]))
    if len(combined) > MAX_TAGS:
        raise InvalidArgumentError(
            "tags", f"{place.uri_of(path)} would have {len(combined)} tags, more than {MAX_TAGS}; use the mode replace"
        )
    return changes.encode_tags(combined)


def _check(_context: CallContext, op: SetTags) -> tuple[Names, list[str]]:
    given = op.tags.split(",") if isinstance(op.tags, str) else op.tags
    tags = list(dict.fromkeys(stripped for tag in given if (stripped := tag.strip())))
    if len(tags) > MAX_TAGS:
        raise InvalidArgumentError("tags", f"has {len(tags)} tags, more than {MAX_TAGS}; use fewer")
    for tag in tags:
        _check_tag(tag)
    if op.mode == "append" and not tags:
        raise InvalidArgumentError("tags", "is empty; give a tag to append, or use the mode clear")
    return parse_uri(op.uri), tags


def _check_tag(tag: str) -> None:
    if len(tag) > MAX_TAG_CHARS or not tag.isprintable():
        reason = f"is longer than {MAX_TAG_CHARS} characters, or has a control character"
        raise InvalidArgumentError("tags", f"{short_repr(tag)} {reason}; use a word or key=value")


def _parse_uri(_context: CallContext, op: ReadAttributes) -> Names:
    return parse_uri(op.uri)


HANDLERS: dict[type, OperationHandler] = {
    ReadAttributes: OperationHandler(_read, check=_parse_uri),
    SetTags: OperationHandler(_set, writes=always, check=_check),
}
