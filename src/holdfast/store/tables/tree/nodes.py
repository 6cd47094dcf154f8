"""Nodes: the stored files and folders. Every function that changes nodes expects that their roots are locked."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from holdfast.store.database import Tx

_COLUMNS = (
    "n.node_id, n.root, n.path, n.parent, n.name, n.is_folder, n.content_id, n.created_at, n.changed_at, n.removed_at,"
    " n.removal, n.tags, n.meta, COALESCE(c.version, 0), COALESCE(c.size, 0), c.blob, COALESCE(c.media_type, ''),"
    " COALESCE(c.state, ''), COALESCE(c.abstract, '')"
)
_FROM = "FROM nodes n LEFT JOIN contents c ON c.account_id = n.account_id AND c.content_id = n.content_id"
LIVE = "n.account_id = ? AND n.root = ? AND n.removed_at IS NULL"
MAX_IDS = 400
"""How many ids one statement names."""
SortKey = Literal["name", "mtime"]


class Node(NamedTuple):
    """A row of `nodes`, with its current content."""

    node_id: int
    root: str
    path: str
    """The names below the root, encoded as in a URI, with slashes between."""
    parent: str
    name: str
    is_folder: int
    content_id: int | None
    created_at: int
    changed_at: int
    removed_at: int | None
    removal: int | None
    """What was removed at once has the same number."""
    tags: str
    meta: str
    version: int
    """0 for a folder."""
    size: int
    blob: str | None
    media_type: str
    state: str
    abstract: str


class NewNode(msgspec.Struct, frozen=True, kw_only=True):
    node_id: int
    root: str
    path: str
    name: str
    is_folder: bool
    content_id: int | None = None
    tags: str = "[]"
    meta: str = "{}"


def parent_of(path: str) -> str:
    """Return the path of the folder of a path.

    >>> parent_of("a/b/c"), parent_of("a")
    ('a/b', '')
    """
    return path.rpartition("/")[0]


def subtree_range(path: str) -> tuple[str, str]:
    """Return the first path below a folder, and the first path after it. All characters sort by their code."""
    return (f"{path}/", f"{path}0") if path else ("", "\U0010ffff")


def find(tx: Tx, root: str, path: str) -> Node | None:
    row = tx.one(f"SELECT {_COLUMNS} {_FROM} WHERE {LIVE} AND n.path = ?", (tx.account, root, path))
    return None if row is None else Node(*row)


def find_all(tx: Tx, root: str, paths: Sequence[str]) -> list[Node]:
    """Find the nodes at some paths. Paths without a node are left out."""
    found: list[Node] = []
    for first in range(0, len(paths), MAX_IDS):
        chunk = paths[first : first + MAX_IDS]
        marks = ", ".join("?" * len(chunk))
        rows = tx.all(f"SELECT {_COLUMNS} {_FROM} WHERE {LIVE} AND n.path IN ({marks})", (tx.account, root, *chunk))
        found += [Node(*row) for row in rows]
    return found


def find_by_id(tx: Tx, node_id: int) -> Node | None:
    """Find a node, also if it is removed."""
    found = read(tx, [node_id])
    return found[0] if found else None


def read(tx: Tx, node_ids: Sequence[int]) -> list[Node]:
    """Read nodes by their ids, also removed ones. Missing ones are left out."""
    found: list[Node] = []
    for first in range(0, len(node_ids), MAX_IDS):
        chunk = node_ids[first : first + MAX_IDS]
        marks = ", ".join("?" * len(chunk))
        rows = tx.all(
            f"SELECT {_COLUMNS} {_FROM} WHERE n.account_id = ? AND n.node_id IN ({marks})", (tx.account, *chunk)
        )
        found += [Node(*row) for row in rows]
    return found


def children(tx: Tx, root: str, parent: str, after: str, limit: int) -> list[Node]:
    """List children of a folder in the order of their names, from the one after a name on."""
    rows = tx.all(
        f"SELECT {_COLUMNS} {_FROM} WHERE {LIVE} AND n.parent = ? AND n.name > ? ORDER BY n.name LIMIT ?",
        (tx.account, root, parent, after, limit),
    )
    return [Node(*row) for row in rows]


def sorted_children(
    tx: Tx, root: str, parent: str, sort_by: SortKey, *, descending: bool, offset: int, limit: int
) -> list[Node]:
    """List children of a folder in any order."""
    direction = "DESC" if descending else "ASC"
    column = "n.name" if sort_by == "name" else "n.changed_at"
    rows = tx.all(
        f"SELECT {_COLUMNS} {_FROM} WHERE {LIVE} AND n.parent = ?"
        f" ORDER BY {column} {direction}, n.name {direction} LIMIT ? OFFSET ?",
        (tx.account, root, parent, limit, offset),
    )
    return [Node(*row) for row in rows]


def count_children(tx: Tx, root: str, parent: str) -> int:
    row = tx.one(f"SELECT COUNT(*) FROM nodes n WHERE {LIVE} AND n.parent = ?", (tx.account, root, parent))
    return int(row[0]) if row else 0


def subtree(tx: Tx, root: str, path: str, after: str, limit: int) -> list[Node]:
    """List nodes below a path in the order of their paths, from the one after a path on."""
    first, end = subtree_range(path)
    rows = tx.all(
        f"SELECT {_COLUMNS} {_FROM} WHERE {LIVE} AND n.path > ? AND n.path < ? ORDER BY n.path LIMIT ?",
        (tx.account, root, max(first, after), end, limit),
    )
    return [Node(*row) for row in rows]


def walk(tx: Tx, root: str, path: str, page: int = 500) -> Iterator[Node]:
    """Yield all nodes below a path in the order of their paths."""
    after = ""
    while found := subtree(tx, root, path, after, page):
        yield from found
        after = found[-1].path


def paths(tx: Tx, root: str, path: str, after: str, limit: int) -> list[str]:
    """List the paths below a path in order. It reads the index of paths only."""
    first, end = subtree_range(path)
    rows = tx.all(
        f"SELECT n.path FROM nodes n WHERE {LIVE} AND n.path > ? AND n.path < ? ORDER BY n.path LIMIT ?",
        (tx.account, root, max(first, after), end, limit),
    )
    return [row[0] for row in rows]


def find_many(tx: Tx, root: str, paths: Sequence[str]) -> list[Node]:
    """Find the nodes at some paths, in the order of their paths."""
    found: list[Node] = []
    for first in range(0, len(paths), MAX_IDS):
        chunk = sorted(paths[first : first + MAX_IDS])
        marks = ", ".join("?" * len(chunk))
        rows = tx.all(
            f"SELECT {_COLUMNS} {_FROM} WHERE {LIVE} AND n.path IN ({marks}) ORDER BY n.path",
            (tx.account, root, *chunk),
        )
        found += [Node(*row) for row in rows]
    return found


def count_subtree(tx: Tx, root: str, path: str) -> int:
    """Count the nodes below a path."""
    row = tx.one(
        f"SELECT COUNT(*) FROM nodes n WHERE {LIVE} AND n.path >= ? AND n.path < ?",
        (tx.account, root, *subtree_range(path)),
    )
    return int(row[0]) if row else 0


def last_change(tx: Tx, root: str) -> int:
    """When something at the top of a root was last changed, or 0."""
    row = tx.one(f"SELECT MAX(n.changed_at) FROM nodes n WHERE {LIVE} AND n.parent = ''", (tx.account, root))
    return row[0] or 0 if row else 0


def insert(tx: Tx, node: NewNode, now: int) -> None:
    tx.execute(
        "INSERT INTO nodes (account_id, node_id, root, path, parent, name, is_folder, content_id, created_at,"
        " changed_at, tags, meta) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            tx.account,
            node.node_id,
            node.root,
            node.path,
            parent_of(node.path),
            node.name,
            int(node.is_folder),
            node.content_id,
            now,
            now,
            node.tags,
            node.meta,
        ),
    )


def set_content(tx: Tx, node_id: int, content_id: int | None, now: int | None) -> None:
    """Set the current content. Without a time, the node counts as unchanged."""
    changed, params = ("", ()) if now is None else (", changed_at = ?", (now,))
    tx.execute(
        f"UPDATE nodes SET content_id = ?{changed} WHERE account_id = ? AND node_id = ?",
        (content_id, *params, tx.account, node_id),
    )


def touch(tx: Tx, root: str, path: str, now: int) -> int | None:
    """Record that the children of a folder have changed. Return its id; None at the top of a root."""
    if not path:
        return None
    row = tx.one(
        "UPDATE nodes SET changed_at = ? WHERE account_id = ? AND root = ? AND path = ? AND removed_at IS NULL"
        " RETURNING node_id",
        (now, tx.account, root, path),
    )
    return None if row is None else int(row[0])


def set_tags(tx: Tx, node_id: int, tags: str) -> None:
    tx.execute("UPDATE nodes SET tags = ? WHERE account_id = ? AND node_id = ?", (tags, tx.account, node_id))


def set_tags_of(tx: Tx, root: str, paths: Sequence[str], tags: str) -> None:
    """Give the same tags to the nodes at some paths."""
    for first in range(0, len(paths), MAX_IDS):
        chunk = paths[first : first + MAX_IDS]
        marks = ", ".join("?" * len(chunk))
        tx.execute(
            f"UPDATE nodes SET tags = ? WHERE account_id = ? AND root = ? AND removed_at IS NULL AND path IN ({marks})",
            (tags, tx.account, root, *chunk),
        )


def tags_below(tx: Tx, root: str, path: str, after: str, limit: int) -> list[tuple[str, str]]:
    """List the paths below a path with their tags, in order, from the one after a path on."""
    first, end = subtree_range(path)
    rows = tx.all(
        f"SELECT n.path, n.tags FROM nodes n WHERE {LIVE} AND n.path > ? AND n.path < ? ORDER BY n.path LIMIT ?",
        (tx.account, root, max(first, after), end, limit),
    )
    return [(found, tags) for found, tags in rows]


def set_meta(tx: Tx, node_id: int, meta: str) -> None:
    tx.execute("UPDATE nodes SET meta = ? WHERE account_id = ? AND node_id = ?", (meta, tx.account, node_id))


def move(tx: Tx, node: Node, root: str, path: str, name: str) -> None:
    """Give a node another path, and its whole subtree with it."""
    tx.execute(
        "UPDATE nodes SET root = ?, path = ?, parent = ?, name = ? WHERE account_id = ? AND node_id = ?",
        (root, path, parent_of(path), name, tx.account, node.node_id),
    )
    length = len(node.path)
    tx.execute(
        "UPDATE nodes SET root = ?, path = CAST(? AS TEXT) || substr(path, ?),"
        " parent = CAST(? AS TEXT) || substr(parent, ?)"
        " WHERE account_id = ? AND root = ? AND removed_at IS NULL AND path >= ? AND path < ?",
        (root, path, length + 1, path, length + 1, tx.account, node.root, *subtree_range(node.path)),
    )


def move_root(tx: Tx, root: str, new_root: str, new_folder: str) -> None:
    """Move all nodes of a root into a folder of another root. The folder may be empty: the top of that root."""
    prefix = f"{new_folder}/" if new_folder else ""
    tx.execute(
        "UPDATE nodes SET root = ?, path = CAST(? AS TEXT) || path,"
        " parent = CASE WHEN parent = '' THEN CAST(? AS TEXT) ELSE CAST(? AS TEXT) || parent END"
        " WHERE account_id = ? AND root = ? AND removed_at IS NULL",
        (new_root, prefix, new_folder, prefix, tx.account, root),
    )


def remove(tx: Tx, node: Node, removal: int, now: int) -> int:
    """Remove a node with its subtree. The rows stay, so that it can be restored. Return how many nodes it had."""
    first, end = subtree_range(node.path)
    at_or_below = "removed_at IS NULL AND (path = ? OR (path >= ? AND path < ?))"
    params = (tx.account, node.root, node.path, first, end)
    rows = tx.all(f"SELECT COUNT(*) FROM nodes WHERE account_id = ? AND root = ? AND {at_or_below}", params)
    tx.execute(
        f"UPDATE nodes SET removed_at = ?, removal = ? WHERE account_id = ? AND root = ? AND {at_or_below}",
        (now, removal, *params),
    )
    return int(rows[0][0])


def last_removed(tx: Tx, root: str, path: str) -> Node | None:
    """Find what was removed last at a path."""
    row = tx.one(
        f"SELECT {_COLUMNS} {_FROM} WHERE n.account_id = ? AND n.root = ? AND n.path = ? AND n.removed_at IS NOT NULL"
        " ORDER BY n.removed_at DESC, n.removal DESC LIMIT 1",
        (tx.account, root, path),
    )
    return None if row is None else Node(*row)


def restore(tx: Tx, node: Node) -> None:
    """Undo the removal of a node, and of what was removed with it below its path."""
    first, end = subtree_range(node.path)
    tx.execute(
        "UPDATE nodes SET removed_at = NULL, removal = NULL WHERE account_id = ? AND root = ? AND removal = ?"
        " AND (path = ? OR (path >= ? AND path < ?))",
        (tx.account, node.root, node.removal, node.path, first, end),
    )


def delete(tx: Tx, node_ids: Sequence[int]) -> None:
    """Delete the rows of nodes for ever."""
    for first in range(0, len(node_ids), MAX_IDS):
        chunk = node_ids[first : first + MAX_IDS]
        marks = ", ".join("?" * len(chunk))
        tx.execute(f"DELETE FROM nodes WHERE account_id = ? AND node_id IN ({marks})", (tx.account, *chunk))


def longest_path(tx: Tx, node: Node) -> int:
    """Return the length of the longest path at or below a node, in bytes of UTF-8."""
    first, end = subtree_range(node.path)
    row = tx.one(
        "SELECT MAX(octet_length(path)) FROM nodes WHERE account_id = ? AND root = ? AND removed_at IS NULL"
        " AND (path = ? OR (path >= ? AND path < ?))",
        (tx.account, node.root, node.path, first, end),
    )
    return row[0] or 0 if row else 0


def has_conflict(tx: Tx, node: Node) -> bool:
    """Whether a removed node, or what was removed with it, has the path of a node that exists."""
    first, end = subtree_range(node.path)
    row = tx.one(
        f"SELECT 1 FROM nodes n WHERE {LIVE} AND (n.path = ? OR (n.path >= ? AND n.path < ?)) AND EXISTS"
        " (SELECT 1 FROM nodes r WHERE r.account_id = n.account_id AND r.root = n.root AND r.path = n.path"
        " AND r.removed_at IS NOT NULL AND r.removal = ?) LIMIT 1",
        (tx.account, node.root, node.path, first, end, node.removal),
    )
    return row is not None


def lock_content(tx: Tx, node_id: int) -> Node | None:
    """Find a node, also if it is removed, and lock its row until the transaction ends."""
    row = tx.one(
        f"SELECT 1 FROM nodes WHERE account_id = ? AND node_id = ?{tx.dialect.lock_row}", (tx.account, node_id)
    )
    return None if row is None else find_by_id(tx, node_id)


def indexed_in_removal(tx: Tx, node: Node, limit: int) -> list[int]:
    """List contents of nodes that were removed at once with a node, also earlier ones, that still have documents."""
    rows = tx.all(
        "SELECT c.content_id FROM nodes n JOIN contents c ON c.account_id = n.account_id AND c.node_id = n.node_id"
        " WHERE n.account_id = ? AND n.removal = ? AND EXISTS"
        " (SELECT 1 FROM documents d WHERE d.account_id = c.account_id AND d.content_id = c.content_id) LIMIT ?",
        (tx.account, node.removal, limit),
    )
    return [row[0] for row in rows]


def delete_staged(tx: Tx, limit: int) -> int:
    """Delete nodes of all accounts that were staged by a task which is over, with their contents. Return how many."""
    rows = tx.all(
        "DELETE FROM nodes WHERE (account_id, node_id) IN (SELECT n.account_id, n.node_id FROM nodes n"
        " WHERE n.root >= 'staging/' AND n.root < 'staging0' AND NOT EXISTS (SELECT 1 FROM tasks t"
        " WHERE t.account_id = n.account_id AND n.root > 'staging/' || t.task_id || '/'"
        " AND n.root < 'staging/' || t.task_id || '0'"
        " AND t.status IN ('pending', 'running')) LIMIT ?) RETURNING account_id, node_id",
        (limit,),
    )
    for key in rows:
        tx.execute("DELETE FROM unprocessed WHERE account_id = ? AND node_id = ?", key)
        tx.execute("DELETE FROM contents WHERE account_id = ? AND node_id = ?", key)
    return len(rows)
