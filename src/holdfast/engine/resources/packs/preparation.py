"""What an import does before its transaction: reading the pack, finding its places, and storing its bytes."""

from typing import Any

import msgspec

from holdfast.engine.gate.operation_handler import CallContext, EngineResources
from holdfast.engine.resources.blob_files import BlobFile
from holdfast.engine.resources.packs.contents import PackContents, read_pack, refuse
from holdfast.engine.resources.packs.insertion import PlacedNode, PlacedPack, require_no_conflict
from holdfast.engine.resources.packs.storing import BlobStore
from holdfast.engine.transfers.uploads import require_complete
from holdfast.engine.tree.changes import text_type_of
from holdfast.engine.tree.places import Place, find_place, require_place
from holdfast.errors import InvalidArgumentError, InvalidUriError, short_repr
from holdfast.model.identity import Principal
from holdfast.model.tree.packs import PackNode, PackVersion
from holdfast.model.uris import SCHEME, child_uri, parse_uri
from holdfast.ops.tree.packs import ImportPack, RestorePack
from holdfast.store.database import Database
from holdfast.store.timestamps import from_micros

Import = ImportPack | RestorePack


def prepare(resources: EngineResources, principal: Principal, op: Import, context: CallContext) -> PlacedPack:
    """Read and check the pack, and store its bytes."""
    db = resources.db
    pack = _open(db, principal, op)
    placed = _place(principal, op, pack)
    db.read(principal.account_id, lambda tx: require_no_conflict(tx, placed, op.on_conflict))
    stored = BlobStore(db, principal, context.ids).store(pack.blobs)
    if not pack.plain_files:
        return placed
    versions = {
        path: PackVersion(
            version=1,
            created_at=from_micros(context.now),
            author=principal.user_id,
            change="import",
            size=stored[blob.name].size,
            sha256=stored[blob.name].sha256,
            content_type=text_type_of(path),
        )
        for path, blob in pack.plain_files.items()
    }
    nodes = [
        msgspec.structs.replace(each, node=msgspec.structs.replace(each.node, versions=[versions[each.node.path]]))
        if each.node.path in versions
        else each
        for each in placed.nodes
    ]
    return msgspec.structs.replace(placed, nodes=nodes)


def _open(db: Database, principal: Principal, op: Import) -> PackContents:
    account = principal.account_id
    upload, digest = db.read(account, lambda tx: require_complete(tx, principal, op.temp_file_id))
    file: Any = BlobFile(lambda read: db.read(account, read), digest, upload.size)
    pack = read_pack(file, upload.name)
    if isinstance(op, ImportPack) and pack.kind == "backup":
        raise refuse(f"{short_repr(upload.name)} is a backup; restore it")
    if isinstance(op, RestorePack) and pack.kind != "backup":
        raise refuse(f"{short_repr(upload.name)} is not a backup; import it, and name a folder")
    return pack


def _place(principal: Principal, op: Import, pack: PackContents) -> PlacedPack:
    """Find the places of all nodes. Raise an error if the caller may not write one of them."""
    if isinstance(op, RestorePack):
        base, uri, top = SCHEME, SCHEME, None
    else:
        parent = _require_parent(principal, op)
        uri = child_uri(parent.uri, pack.name)
        top = require_place(principal, uri, parse_uri(uri))
        base = f"{parent.uri}/" if pack.kind == "file" else f"{uri}/"
    nodes = [PlacedNode(_place_of(principal, base, each), each) for each in pack.nodes]
    return PlacedPack(uri=uri if top is None else top.uri, top=top, base=base, nodes=nodes, relations=pack.relations)


def _require_parent(principal: Principal, op: ImportPack) -> Place:
    names = parse_uri(op.parent)
    place = find_place(principal, names)
    if place is None or place.path:
        return require_place(principal, op.parent, names)
    return place


def _place_of(principal: Principal, base: str, node: PackNode) -> Place:
    uri = f"{base}{node.path}".rstrip("/")
    try:
        return require_place(principal, uri, parse_uri(uri))
    except (InvalidArgumentError, InvalidUriError) as error:
        raise refuse(
            f"the pack has the path {short_repr(node.path)}, which cannot be stored: {error.message}"
        ) from None
