"""Which contents of stored files and folders are current. What was moved, removed or overwritten is right at once.

A root that the caller may read is named by the caller of these functions. Nodes that are being added are in a root of
their own, which nobody names.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.store.database import Row, Tx

MAX_IDS = 400
"""How many contents one statement names."""
_CURRENT = "account_id = ? AND removed_at IS NULL AND content_id IS NOT NULL"


class CurrentNode(NamedTuple):
    """A file or folder whose current content was asked for."""

    content_id: int
    root: str
    path: str
    is_folder: int
    created_at: int
    changed_at: int
    tags: str


def read_versions(tx: Tx, roots: Sequence[str]) -> dict[str, int]:
    """Return the versions of roots, which change with each change of their nodes. A root without nodes has none."""
    marks = ", ".join("?" * len(roots)) or "NULL"
    rows = tx.all(
        f"SELECT root, version FROM tree_roots WHERE account_id = ? AND root IN ({marks})", (tx.account, *roots)
    )
    return dict(rows)


def read_root(tx: Tx, root: str) -> list[Row]:
    """Read all nodes of a root that have a content: the content, path, whether it is a folder, both times, and tags."""
    return tx.all(
        f"SELECT content_id, path, is_folder, created_at, changed_at, tags FROM nodes WHERE {_CURRENT} AND root = ?",
        (tx.account, root),
    )


def locate(tx: Tx, roots: Sequence[str], content_ids: Sequence[int]) -> dict[int, CurrentNode]:
    """Find the nodes in some roots whose current contents are these, by content."""
    found: dict[int, CurrentNode] = {}
    for first in range(0, len(content_ids) if roots else 0, MAX_IDS):
        chunk = content_ids[first : first + MAX_IDS]
        rows = tx.all(
            "SELECT content_id, root, path, is_folder, created_at, changed_at, tags FROM nodes"
            f" WHERE {_CURRENT} AND content_id IN ({', '.join('?' * len(chunk))})"
            f" AND root IN ({', '.join('?' * len(roots))})",
            (tx.account, *chunk, *roots),
        )
        found.update((row[0], CurrentNode(*row)) for row in rows)
    return found
