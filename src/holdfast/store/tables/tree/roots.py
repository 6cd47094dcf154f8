"""Roots: the places where stored nodes are mounted. Changes of one root come one after the other."""

from collections.abc import Iterable

from holdfast.store.database import Tx

RESOURCES = "resources"
"""The resources of the account."""
PUBLISHED_SKILLS = "system/skills"
"""The skills that are published to the account."""
STAGING = "staging/"
"""Roots that begin with this are not mounted: nothing in them is listed or found."""
EVERYONE = "*"
"""The owner of documents that every user of the account may read. No user can have this name."""
_USERS = "user/"


def of_user(internal_id: str, folder: str) -> str:
    """Return the root of a folder of a user, such as `resources` or `skills`."""
    return f"{_USERS}{internal_id}/{folder}"


def staging(task_id: str, owner_id: str) -> str:
    """Return the root of what a task prepares. `owner_id` will own the documents when it is placed."""
    return f"{STAGING}{task_id}/{owner_id}"


def is_staging(root: str) -> bool:
    return root.startswith(STAGING)


def owner_of(root: str) -> str:
    """Return who owns the documents of a root: the internal id of a user, or `EVERYONE`.

    >>> owner_of("resources"), owner_of("user/alice/skills"), owner_of("staging/task_1/alice")
    ('*', 'alice', 'alice')
    """
    if is_staging(root):
        return root.rpartition("/")[2]
    return root.split("/")[1] if root.startswith(_USERS) else EVERYONE


def lock(tx: Tx, roots: Iterable[str]) -> None:
    """Begin to change some roots: no other transaction changes them until this one ends."""
    for root in sorted(set(roots)):  # in one order, so that transactions cannot deadlock
        tx.execute(
            "INSERT INTO tree_roots AS r (account_id, root, version) VALUES (?, ?, 1)"
            " ON CONFLICT (account_id, root) DO UPDATE SET version = r.version + 1",
            (tx.account, root),
        )


def hold(tx: Tx, roots: Iterable[str]) -> None:
    """Let no other transaction change some roots until this one ends. What searches keep of them stays valid."""
    if not tx.dialect.lock_row:
        return
    for root in sorted(set(roots)):
        tx.one(f"SELECT 1 FROM tree_roots WHERE account_id = ? AND root = ?{tx.dialect.lock_row}", (tx.account, root))
