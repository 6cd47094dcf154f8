"""The skills of a root: its folders with a file SKILL.md, and the beginnings of these files."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.store.database import Tx
from holdfast.store.tables.tree import nodes

SKILL_FILE = "SKILL.md"


class SkillNode(NamedTuple):
    """The folder of a skill, and its file SKILL.md."""

    node_id: int
    path: str
    name: str
    meta: str
    changed_at: int
    abstract: str
    file_id: int
    content_id: int
    version: int
    blob: str
    size: int


_COLUMNS = (
    "n.node_id, n.path, n.name, n.meta, n.changed_at, COALESCE(f.abstract, ''), s.node_id, c.content_id, c.version,"
    " c.blob, c.size"
)
_FROM = (
    "FROM nodes n"
    f" JOIN nodes s ON s.account_id = n.account_id AND s.root = n.root AND s.path = n.path || '/{SKILL_FILE}'"
    " AND s.removed_at IS NULL AND s.is_folder = 0"
    " JOIN contents c ON c.account_id = s.account_id AND c.content_id = s.content_id AND c.blob IS NOT NULL"
    " LEFT JOIN contents f ON f.account_id = n.account_id AND f.content_id = n.content_id"
)
_LIVE = "n.account_id = ? AND n.root = ? AND n.parent = '' AND n.removed_at IS NULL"


def read_page(tx: Tx, root: str, after: str, limit: int) -> list[SkillNode]:
    """List skills of a root in the order of their names, from the one after a name on."""
    rows = tx.all(
        f"SELECT {_COLUMNS} {_FROM} WHERE {_LIVE} AND n.name > ? ORDER BY n.name LIMIT ?",
        (tx.account, root, after, limit),
    )
    return [SkillNode(*row) for row in rows]


def find(tx: Tx, root: str, path: str) -> SkillNode | None:
    row = tx.one(f"SELECT {_COLUMNS} {_FROM} WHERE {_LIVE} AND n.path = ?", (tx.account, root, path))
    return None if row is None else SkillNode(*row)


def exists(tx: Tx, root: str, path: str) -> bool:
    """Whether a root has a folder or file at a path."""
    row = tx.one(
        "SELECT 1 FROM nodes WHERE account_id = ? AND root = ? AND path = ? AND removed_at IS NULL",
        (tx.account, root, path),
    )
    return row is not None


def has_unprocessed(tx: Tx, root: str, path: str) -> bool:
    """Whether files below a path are not processed yet."""
    row = tx.one(
        "SELECT 1 FROM nodes n JOIN unprocessed u ON u.account_id = n.account_id AND u.node_id = n.node_id"
        " WHERE n.account_id = ? AND n.root = ? AND n.removed_at IS NULL AND n.is_folder = 0"
        " AND n.path > ? AND n.path < ? LIMIT 1",
        (tx.account, root, *nodes.subtree_range(path)),
    )
    return row is not None


def read_beginnings(tx: Tx, hashes: Sequence[str], length: int) -> dict[str, bytes]:
    """Return the first bytes of some blobs, by their hashes."""
    if not hashes:
        return {}
    marks = ", ".join("?" * len(hashes))
    rows = tx.all(
        f"SELECT hash, substr(data, 1, ?) FROM file_chunks WHERE account_id = ? AND number = 0 AND hash IN ({marks})",
        (length, tx.account, *hashes),
    )
    return {digest: bytes(data) for digest, data in rows}
