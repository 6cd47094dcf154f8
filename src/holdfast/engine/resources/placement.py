"""The last transaction of an addition: what was staged becomes visible at once."""

from collections.abc import Iterable

import msgspec

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.resources.add_kind import discard_staged
from holdfast.engine.tree import changes
from holdfast.engine.tree.places import Place
from holdfast.model.tree.resources import AddPayload
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.tree import contents, nodes, unprocessed
from holdfast.store.tables.tree.nodes import Node

_decode_tags = msgspec.json.Decoder(list[str]).decode


class Placement:
    """Moves staged nodes to their places. The root of the resource is locked."""

    def __init__(self, tx: Tx, context: CallContext, payload: AddPayload, staging: str) -> None:
        self._tx = tx
        self._context = context
        self._payload = payload
        self._staging = staging
        self._parent = nodes.parent_of(payload.path)
        self.added = 0
        self.changed = 0
        self.removed = 0
        self.conflicts: list[str] = []
        self._touched: set[str] = set()
        """The folders whose children have changed."""

    def place(self) -> None:
        payload = self._payload
        mount_uri = payload.uri[: len(payload.uri) - len(payload.path) - 1]
        name = changes.name_of(payload.path)
        changes.ensure_folders(self._tx, self._context, Place(payload.root, payload.path, name, payload.uri, mount_uri))
        top = nodes.children(self._tx, self._staging, "", "", 1)
        if top:
            self._place(top[0])
        discard_staged(self._tx, self._staging)

    def _place(self, node: Node) -> None:
        path = f"{self._parent}/{node.path}" if self._parent else node.path
        target = nodes.find(self._tx, self._payload.root, path)
        if target is None:
            self.added += 1 if not node.is_folder else self._count_files(node)
            nodes.move(self._tx, node, self._payload.root, path, node.name)
            self._touched.add(nodes.parent_of(path))
        elif node.is_folder != target.is_folder:
            self.conflicts.append(path)
        elif node.is_folder:
            for child in list(self._children(node)):
                self._place(child)
        else:
            self._replace(node, target)

    def _children(self, node: Node) -> Iterable[Node]:
        after = ""
        while page := nodes.children(self._tx, node.root, node.path, after, 500):
            yield from page
            after = page[-1].name

    def _count_files(self, folder: Node) -> int:
        return sum(not node.is_folder for node in nodes.walk(self._tx, folder.root, folder.path))

    def _replace(self, node: Node, target: Node) -> None:
        """Make the content of a staged file the newest version of a file."""
        if node.content_id is None or node.blob == target.blob:
            return
        tx, now = self._tx, self._context.now
        contents.move_to_node(tx, node.content_id, target.node_id, contents.last_version(tx, target.node_id) + 1)
        nodes.set_content(tx, target.node_id, node.content_id, now)
        nodes.set_content(tx, node.node_id, None, None)
        nodes.set_meta(tx, target.node_id, node.meta)
        options = self._payload.options
        if options.tags or options.tag_mode == "clear":
            kept = _decode_tags(target.tags) if options.tag_mode == "append" else []
            nodes.set_tags(tx, target.node_id, changes.encode_tags([*kept, *_decode_tags(node.tags)]))
        for outdated in contents.indexed_before(tx, target.node_id, node.content_id):
            documents.delete_of_content(tx, outdated)
        self.changed += 1
        self._touched.add(target.parent)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files that the source does not have any more, and folders that are empty then."""
        removal = self._context.ids.log_id()
        for path in sorted(paths):
            node = nodes.find(self._tx, self._payload.root, path)
            if node is None:
                continue
            self.removed += 1
            top = self._top_of_removal(node)
            nodes.remove(self._tx, top, removal, self._context.now)
            unprocessed.add(self._tx, [top.node_id])
            self._touched.add(top.parent)

    def _top_of_removal(self, node: Node) -> Node:
        """Return the highest folder in the resource that has nothing but a node, or the node itself."""
        while node.parent and node.parent != self._payload.path:
            if len(nodes.children(self._tx, node.root, node.parent, "", 2)) > 1:
                break
            parent = nodes.find(self._tx, node.root, node.parent)
            if parent is None:
                break
            node = parent
        return node

    def finish(self, meta: str | None) -> int:
        """Store what the next addition compares with, and let folders be summarised. Return the number of nodes."""
        root = self._payload.root
        changes.note_changes(self._tx, self._context, [(root, path) for path in sorted(self._touched)])
        node = nodes.find(self._tx, root, self._payload.path)
        if node is None:
            return 0
        if meta is not None:
            nodes.set_meta(self._tx, node.node_id, meta)
        return 1 + nodes.count_subtree(self._tx, root, self._payload.path)
