"""The import of a pack: its bytes are stored first, and one transaction inserts all of its nodes."""

from holdfast import lazy
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.engine.resources.packs.insertion import PlacedPack, insert_pack
from holdfast.errors import InvalidArgumentError
from holdfast.model.identity import Principal
from holdfast.model.tree.packs import PackImported
from holdfast.model.uris import parse_uri
from holdfast.ops.tree.packs import ImportPack, RestorePack
from holdfast.store.database import Tx

Import = ImportPack | RestorePack


def _check(context: CallContext, op: Import) -> CallContext:
    if op.vector_mode == "require":
        raise InvalidArgumentError("vector_mode", "a pack has no vectors, they are computed again; use auto")
    if isinstance(op, ImportPack) and not parse_uri(op.parent):
        raise InvalidArgumentError("parent", "is the root of the tree; use a folder such as viking://resources")
    return context


def _prepare(resources: EngineResources, principal: Principal, op: Import, context: CallContext) -> PlacedPack:
    """Read the pack, and store its bytes. What this needs is loaded with the first import."""
    placed: PlacedPack = lazy.load("holdfast.engine.resources.packs.preparation").prepare(
        resources, principal, op, context
    )
    return placed


def _import(tx: Tx, principal: Principal, op: Import, placed: PlacedPack, context: CallContext) -> PackImported:
    return insert_pack(tx, principal, placed, op.on_conflict, context)


HANDLERS: dict[type, OperationHandler] = {
    ImportPack: OperationHandler(_import, writes=always, check=_check, prepare=_prepare),
    RestorePack: OperationHandler(_import, writes=always, check=_check, prepare=_prepare),
}
