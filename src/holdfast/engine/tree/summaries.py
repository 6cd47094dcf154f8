"""The abstract and the overview of any node. A node without a summary of its own gets one from its entries."""

from itertools import islice

from holdfast.engine.tree.nodes import File, Folder, Node
from holdfast.engine.tree.reading import Selection
from holdfast.errors import FailedPreconditionError
from holdfast.model.tree.files import ABSTRACT, OVERVIEW

LISTED_ENTRIES = 20
MAX_ABSTRACT_CHARS = 256
MAX_OVERVIEW_CHARS = 4_000


def read_abstract(node: Node) -> str:
    """Return the one-line summary of a node."""
    own = _own_summary(node, ABSTRACT) or node.abstract()
    if own:
        return own
    if isinstance(node, Folder):
        return _list_entries(node)[:MAX_ABSTRACT_CHARS]
    return _beginning(node, MAX_ABSTRACT_CHARS).partition("\n")[0]


def read_overview(node: Node) -> str:
    """Return the longer summary of a node."""
    own = _own_summary(node, OVERVIEW) or node.overview() or node.abstract()
    if own:
        return own
    return _list_entries(node) if isinstance(node, Folder) else _beginning(node, MAX_OVERVIEW_CHARS)


def _own_summary(node: Node, name: str) -> str:
    file = node.child(name) if isinstance(node, Folder) else None
    return file.read(Selection()) if isinstance(file, File) else ""


def _list_entries(folder: Folder) -> str:
    found = list(islice((node for node in folder.children() if not node.name.startswith(".")), LISTED_ENTRIES + 1))
    if not found:
        return f"{folder.name or 'viking://'} is empty."
    names = ", ".join(f"{node.name}/" if isinstance(node, Folder) else node.name for node in found[:LISTED_ENTRIES])
    return f"{folder.name or 'viking://'} has {names}{' and more' if len(found) > LISTED_ENTRIES else ''}."


def _beginning(file: File, chars: int) -> str:
    try:
        return file.read(Selection(char_limit=chars))
    except FailedPreconditionError as error:  # it has no text
        return error.message[:chars]
