"""Summaries of folders, made from the abstracts of their children."""

import msgspec

from holdfast.documents import ChildSummary, FileSummary, summarise_folder
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.processing.files import overview_part, register_parent
from holdfast.engine.processing.kinds import kind_of
from holdfast.engine.processing.node_meta import read_meta
from holdfast.engine.recall.content_documents import analyse_parts, write_documents
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.tree import contents, nodes, roots, unprocessed
from holdfast.store.tables.tree.contents import FOLDER_VERSION, Content
from holdfast.store.tables.tree.nodes import Node

MAX_CHILDREN = 200
"""How many children a summary is made from, the first by name."""


class FolderToSummarise(msgspec.Struct, frozen=True):
    node: Node
    children: list[ChildSummary]
    count: int
    """The number of all children."""


def read_folder(tx: Tx, node: Node) -> FolderToSummarise:
    found = nodes.children(tx, node.root, node.path, "", MAX_CHILDREN)
    count = len(found) if len(found) < MAX_CHILDREN else nodes.count_children(tx, node.root, node.path)
    return FolderToSummarise(
        node, [ChildSummary(each.name, bool(each.is_folder), each.abstract) for each in found], count
    )


def summarise(folder: FolderToSummarise) -> FileSummary | None:
    """Return the summary of a folder; None if it has none, because it is empty."""
    meta = read_meta(folder.node)
    if not folder.children and not meta.description:
        return None
    return summarise_folder(folder.node.name, folder.children, meta.reason or meta.description)


def write_folder(tx: Tx, context: CallContext, folder: FolderToSummarise, summary: FileSummary | None) -> None:
    """Store the summary of a folder, unless it has it already. Then the folder above it is summarised again.

    A folder that was changed, moved or removed since it was read stays registered.
    """
    roots.lock(tx, [folder.node.root])  # searches see the new summary
    node = nodes.lock_content(tx, folder.node.node_id)
    if node is not None and _state(node) != _state(folder.node):
        return
    unprocessed.delete(tx, [folder.node.node_id])
    if node is None:
        return
    old = None if node.content_id is None else contents.find(tx, node.content_id)
    owner_id = roots.owner_of(node.root)
    is_same = summary is not None and old is not None and _texts(old) == _texts(summary)
    if is_same and documents.owner_of_content(tx, node.content_id or 0) == owner_id:
        return
    documents.lock_owners(tx, [] if old is None else [old.content_id], [owner_id])
    if old is not None:
        documents.delete_of_content(tx, old.content_id)
        contents.delete(tx, old.content_id)
    content_id = None
    if summary is not None:
        content_id = context.ids.log_id()
        contents.insert(tx, _content(context, node, content_id, summary))
        part = overview_part(node, summary.abstract, summary.overview)
        new = analyse_parts(kind_of(node.root), content_id, context.now, [], [part])
        write_documents(tx, owner_id, content_id, new)
    nodes.set_content(tx, node.node_id, content_id, None)
    register_parent(tx, node)


def _state(node: Node) -> tuple[str, str, int, int | None]:
    return node.root, node.path, node.changed_at, node.removed_at


def _texts(summary: FileSummary | Content) -> tuple[str, str]:
    return summary.abstract, summary.overview


def _content(context: CallContext, node: Node, content_id: int, summary: FileSummary) -> Content:
    return Content(
        content_id=content_id,
        node_id=node.node_id,
        version=FOLDER_VERSION,
        created_at=context.now,
        author="",
        change="summary",
        blob=None,
        size=0,
        media_type="",
        state="done",
        text_blob=None,
        outline="[]",
        abstract=summary.abstract,
        overview=summary.overview,
        error=None,
    )
