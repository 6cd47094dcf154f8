"""The texts of stored files, in the order of their paths."""

from typing import NamedTuple

from holdfast.store.database import Tx
from holdfast.store.tables.tree.nodes import LIVE, subtree_range


class TextFile(NamedTuple):
    """A file, and where its text is: its own bytes, or what was extracted from them."""

    path: str
    tags: str
    media_type: str
    blob: str | None
    text_blob: str | None
    size: int
    """Of the text, in bytes."""


def list_below(tx: Tx, root: str, path: str, after: str, limit: int) -> list[TextFile]:
    """List the files below a path in the order of their paths, from the one after a path on."""
    first, end = subtree_range(path)
    return _list(tx, root, "n.path > ? AND n.path < ?", (max(first, after), end), limit)


def find(tx: Tx, root: str, path: str) -> TextFile | None:
    """Find the file at a path."""
    found = _list(tx, root, "n.path = ?", (path,), 1)
    return found[0] if found else None


def _list(tx: Tx, root: str, condition: str, params: tuple[str, ...], limit: int) -> list[TextFile]:
    text_size = "SELECT b.size FROM file_blobs b WHERE b.account_id = c.account_id AND b.hash = c.text_blob"
    rows = tx.all(
        "SELECT n.path, n.tags, c.media_type, c.blob, c.text_blob,"
        f" CASE WHEN c.text_blob IS NULL THEN c.size ELSE COALESCE(({text_size}), 0) END"
        " FROM nodes n JOIN contents c ON c.account_id = n.account_id AND c.content_id = n.content_id"
        f" WHERE {LIVE} AND n.is_folder = 0 AND {condition} ORDER BY n.path LIMIT ?",
        (tx.account, root, *params, limit),
    )
    return [TextFile(*row) for row in rows]
