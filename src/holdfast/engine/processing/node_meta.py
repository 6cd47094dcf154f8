"""What a user said about a stored file or folder: why it was added, and what matters in it."""

import msgspec

from holdfast.store.tables.tree.nodes import Node


class NodeMeta(msgspec.Struct, frozen=True):
    """The fields of the metadata of a node that summaries and packs use."""

    reason: str = ""
    instruction: str = ""
    description: str = ""


_decode = msgspec.json.Decoder(NodeMeta).decode


def read_meta(node: Node) -> NodeMeta:
    return _decode(node.meta)
