"""Relations between files, folders and sessions."""

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.engine.tree import mounts
from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.nodes import Node
from holdfast.engine.tree.places import require_place
from holdfast.errors import FailedPreconditionError, NotFoundError, PermissionDeniedError, TooLargeError
from holdfast.model.identity import Principal
from holdfast.model.tree.attributes import Linked, Relation, Unlinked
from holdfast.model.uris import build_uri, parse_uri
from holdfast.ops.tree.attributes import LinkFiles, ListRelations, UnlinkFiles
from holdfast.store.database import Tx
from holdfast.store.tables.tree import relations

MAX_RELATIONS = 1_000
"""How many relations an address has."""


def _list(tx: Tx, principal: Principal, op: ListRelations, names: Names, _context: CallContext) -> list[Relation]:
    node = mounts.require(tx, principal, op.uri, names)
    return mounts.readable_relations(tx, principal, relations.list_from(tx, node.uri, MAX_RELATIONS))


def _link(
    tx: Tx, principal: Principal, op: LinkFiles, names: tuple[Names, list[Names]], context: CallContext
) -> Linked:
    source = _require_writable(tx, principal, op.from_uri, names[0])
    targets = [
        mounts.require(tx, principal, uri, target).uri for uri, target in zip(_targets(op), names[1], strict=True)
    ]
    if source.uri in targets:
        raise FailedPreconditionError(f"{source.uri} cannot be related to itself; name another address")
    for target in targets:
        relations.insert(tx, relations.Relation(source.uri, target, op.reason, principal.user_id, context.now))
    if len(relations.list_from(tx, source.uri, MAX_RELATIONS + 1)) > MAX_RELATIONS:
        raise TooLargeError(f"{source.uri} would have more than {MAX_RELATIONS:,} relations; unlink some first")
    return Linked(from_uri=source.uri, to_uris=targets)


def _unlink(
    tx: Tx, principal: Principal, op: UnlinkFiles, names: tuple[Names, Names], _context: CallContext
) -> Unlinked:
    source = _require_writable(tx, principal, op.from_uri, names[0])
    target = mounts.find(tx, principal, names[1])
    uri = build_uri(name or principal.user_id for name in names[1]) if target is None else target.uri
    # A relation to what the caller cannot read is not shown, so it is there only for the one who made it.
    is_hidden = target is None and mounts.find_mount(principal, names[1]) is None
    if not relations.delete(tx, source.uri, uri, author=principal.user_id if is_hidden else None):
        raise NotFoundError("relation", f"{source.uri} to {uri}")
    return Unlinked(from_uri=source.uri, to_uri=uri)


def _require_writable(tx: Tx, principal: Principal, uri: str, names: Names) -> Node:
    """Return the node that gets relations: a stored one that the caller may change, or a session of the caller."""
    node = mounts.require(tx, principal, uri, names)
    found = mounts.find_mount(principal, names)
    if found is None:
        raise PermissionDeniedError(f"{uri} is not yours; relate an address of your own", role=principal.role)
    if found[0].root is not None:
        require_place(principal, uri, names)
    return node


def _targets(op: LinkFiles) -> list[str]:
    return [op.to_uris] if isinstance(op.to_uris, str) else op.to_uris


def _check_link(_context: CallContext, op: LinkFiles) -> tuple[Names, list[Names]]:
    return parse_uri(op.from_uri), [parse_uri(uri) for uri in _targets(op)]


def _check_unlink(_context: CallContext, op: UnlinkFiles) -> tuple[Names, Names]:
    return parse_uri(op.from_uri), parse_uri(op.to_uri)


def _parse_uri(_context: CallContext, op: ListRelations) -> Names:
    return parse_uri(op.uri)


HANDLERS: dict[type, OperationHandler] = {
    ListRelations: OperationHandler(_list, check=_parse_uri),
    LinkFiles: OperationHandler(_link, writes=always, check=_check_link),
    UnlinkFiles: OperationHandler(_unlink, writes=always, check=_check_unlink),
}
