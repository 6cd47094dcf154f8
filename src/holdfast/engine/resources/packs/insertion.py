"""The transaction of an import: the nodes of a pack, their versions, tags and relations."""

from collections.abc import Sequence

import msgspec

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tree import changes
from holdfast.engine.tree.places import Place
from holdfast.errors import AlreadyExistsError
from holdfast.model.identity import Principal
from holdfast.model.tree.packs import OnConflict, PackImported, PackNode, PackRelation, PackVersion
from holdfast.store.database import Tx
from holdfast.store.tables.tree import contents, nodes, relations, roots, unprocessed
from holdfast.store.tables.tree.nodes import NewNode, Node
from holdfast.store.tables.tree.relations import Relation
from holdfast.store.timestamps import storable_micros

Key = tuple[str, str]
"""The root and the path of a node."""


class PlacedNode(msgspec.Struct, frozen=True):
    place: Place
    node: PackNode

    @property
    def key(self) -> Key:
        return self.place.root, self.place.path


class PlacedPack(msgspec.Struct, frozen=True):
    """A pack whose bytes are stored, with the places of its nodes."""

    uri: str
    top: Place | None
    """Where the exported file or folder goes. None for a backup."""
    base: str
    """The address that the paths of the pack follow."""
    nodes: list[PlacedNode]
    relations: list[PackRelation]


def require_no_conflict(tx: Tx, pack: PlacedPack, on_conflict: OnConflict) -> dict[Key, Node]:
    """Return what is at the places of the pack already. Raise an error if the pack cannot be imported there."""
    if on_conflict == "fail" and pack.top is not None and nodes.find(tx, pack.top.root, pack.top.path) is not None:
        raise _exists(pack.top.uri, "import with on_conflict overwrite or skip, or into another folder")
    existing = _find_existing(tx, pack.nodes)
    for each in pack.nodes:
        found = existing.get(each.key)
        if found is None or on_conflict == "skip" or (found.is_folder and each.node.is_folder):
            continue
        if on_conflict == "fail":
            raise _exists(each.place.uri, "restore with on_conflict overwrite or skip")
        if bool(found.is_folder) != each.node.is_folder:
            kind = "folder" if found.is_folder else "file"
            raise _exists(each.place.uri, f"it is a {kind} there and not in the pack: move it away, or skip it")
    return existing


def _exists(uri: str, remedy: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"{uri} exists already; nothing was imported: {remedy}", resource=uri, type="file")


def _find_existing(tx: Tx, placed: Sequence[PlacedNode]) -> dict[Key, Node]:
    paths: dict[str, list[str]] = {}
    for each in placed:
        paths.setdefault(each.place.root, []).append(each.place.path)
    return {(root, node.path): node for root, found in paths.items() for node in nodes.find_all(tx, root, found)}


def insert_pack(
    tx: Tx, principal: Principal, pack: PlacedPack, on_conflict: OnConflict, context: CallContext
) -> PackImported:
    tx.allow_long_statements()
    roots.lock(tx, [each.place.root for each in pack.nodes] or ([pack.top.root] if pack.top is not None else []))
    existing = require_no_conflict(tx, pack, on_conflict)
    if pack.top is not None:
        changes.ensure_folders(tx, context, pack.top)
    insertion = _Insertion(tx, principal, existing, context, skips=on_conflict == "skip")
    for each in sorted(pack.nodes, key=lambda placed: placed.key):  # a folder comes before what is in it
        insertion.add(each)
    count = insertion.add_relations(pack)
    insertion.register()
    return PackImported(
        uri=pack.uri,
        files=insertion.files,
        folders=len(insertion.new_folders),
        updated=insertion.updated,
        skipped=insertion.skipped,
        versions=insertion.versions,
        relations=count,
    )


class _Insertion:
    """Inserts nodes, and counts what it does."""

    def __init__(
        self, tx: Tx, principal: Principal, existing: dict[Key, Node], context: CallContext, *, skips: bool
    ) -> None:
        self._tx = tx
        self._principal = principal
        self._existing = existing
        self._context = context
        self._skips = skips
        self._left_out: set[Key] = set()
        self._changed_files: list[int] = []
        self._changed_parents: set[Key] = set()
        self.new_folders: list[int] = []
        self.files = self.updated = self.skipped = self.versions = 0

    def add(self, placed: PlacedNode) -> None:
        root, path = placed.key
        found = self._existing.get(placed.key)
        is_blocked = (root, nodes.parent_of(path)) in self._left_out
        if is_blocked or (found is not None and self._skips and not (found.is_folder and placed.node.is_folder)):
            self._left_out.add(placed.key)
            self.skipped += not placed.node.is_folder
        elif found is not None:
            self._update(placed, found)
        else:
            self._insert(placed)

    def _insert(self, placed: PlacedNode) -> None:
        node, place = placed.node, placed.place
        node_id = self._context.ids.log_id()
        content_id: int | None = None
        for version in node.versions:
            content_id = self._insert_version(node_id, version)
        notes = {"description": node.description, "reason": node.reason, "instruction": node.instruction}
        new = NewNode(
            node_id=node_id,
            root=place.root,
            path=place.path,
            name=place.name,
            is_folder=node.is_folder,
            content_id=content_id,
            tags=changes.encode_tags(node.tags),
            meta=changes.encode_meta({name: note for name, note in notes.items() if note}),
        )
        nodes.insert(self._tx, new, self._context.now)
        self._changed_parents.add((place.root, nodes.parent_of(place.path)))
        if node.is_folder:
            self.new_folders.append(node_id)
        else:
            self.files += 1
            self._changed_files.append(node_id)

    def _insert_version(self, node_id: int, version: PackVersion) -> int:
        created_at = min(storable_micros("created_at", version.created_at), self._context.now)
        content = self._new_content(node_id, version.version, version.author, version)
        contents.insert(self._tx, content._replace(created_at=created_at))
        self.versions += 1
        return content.content_id

    def _new_content(self, node_id: int, number: int, author: str, version: PackVersion) -> contents.Content:
        return changes.new_content(
            self._context, node_id, number, author, "import", version.sha256, version.size, version.content_type
        )

    def _update(self, placed: PlacedNode, found: Node) -> None:
        """Give an existing node the tags of the pack, and a file its content, as a new version."""
        if placed.node.tags:
            nodes.set_tags(self._tx, found.node_id, changes.encode_tags(placed.node.tags))
        if placed.node.is_folder:
            return
        newest = placed.node.versions[-1]
        if newest.sha256 == found.blob:
            self.skipped += 1
            return
        number = contents.last_version(self._tx, found.node_id) + 1
        content = self._new_content(found.node_id, number, self._principal.user_id, newest)
        contents.insert(self._tx, content)
        nodes.set_content(self._tx, found.node_id, content.content_id, self._context.now)
        self._changed_files.append(found.node_id)
        self._changed_parents.add((found.root, found.parent))
        self.updated += 1
        self.versions += 1

    def add_relations(self, pack: PlacedPack) -> int:
        """Insert the relations of all nodes that were not left out. Return how many."""
        placed = {each.node.path: each for each in pack.nodes}
        uris = {path: each.place.uri for path, each in placed.items()}
        if pack.top is not None:
            uris.setdefault("", pack.top.uri)
        count = 0
        for relation in pack.relations:
            source = placed.get(relation.from_path)
            if source is not None and source.key in self._left_out:
                continue
            from_uri = uris.get(relation.from_path)
            to_uri = relation.to_uri if relation.to_path is None else uris.get(relation.to_path)
            if from_uri is None or to_uri is None:
                continue
            created_at = min(storable_micros("created_at", relation.created_at), self._context.now)
            relations.insert(self._tx, Relation(from_uri, to_uri, relation.reason, relation.author, created_at))
            count += 1
        return count

    def register(self) -> None:
        """Let all that is new be processed."""
        changes.note_changes(self._tx, self._context, sorted(self._changed_parents), self._changed_files)
        unprocessed.add(self._tx, self.new_folders, unprocessed.FOLDER_DELAY)
