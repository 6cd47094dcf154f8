"""What is left of removed files in the index is deleted, a few at a time."""

from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.tree import nodes, roots, unprocessed
from holdfast.store.tables.tree.nodes import Node

SLICE_NODES = 50


def forget_removed(tx: Tx, node: Node) -> bool:
    """Delete the documents of some nodes that were removed with a node. Return whether that was all.

    A node that was restored meanwhile stays registered: it is indexed again.
    """
    roots.hold(tx, [node.root])
    current = nodes.find_by_id(tx, node.node_id)
    if current is not None and current.removal != node.removal:
        return True
    found = nodes.indexed_in_removal(tx, node, SLICE_NODES)
    documents.lock_owners(tx, found)
    for content_id in found:
        documents.delete_of_content(tx, content_id)
    if len(found) == SLICE_NODES:
        return False
    unprocessed.delete(tx, [node.node_id])
    return True
