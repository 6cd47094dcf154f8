"""Relations between addresses of the tree."""

from typing import NamedTuple

from holdfast.store.database import Tx

_COLUMNS = "from_uri, to_uri, reason, author, created_at"
_AT_OR_BELOW = "({0} = ? OR ({0} >= ? AND {0} < ?))"


class Relation(NamedTuple):
    from_uri: str
    to_uri: str
    reason: str
    author: str
    created_at: int


def insert(tx: Tx, relation: Relation) -> None:
    """Add a relation. One that exists gets the new reason."""
    tx.execute(
        f"INSERT INTO relations (account_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (account_id, from_uri, to_uri) DO UPDATE SET reason = excluded.reason",
        (tx.account, *relation),
    )


def delete(tx: Tx, from_uri: str, to_uri: str, *, author: str | None = None) -> bool:
    """Delete a relation, with `author` only one that this user made. Return False if there is none."""
    row = tx.one(
        "DELETE FROM relations WHERE account_id = ? AND from_uri = ? AND to_uri = ?"
        " AND author = COALESCE(?, author) RETURNING 1",
        (tx.account, from_uri, to_uri, author),
    )
    return row is not None


def list_from(tx: Tx, uri: str, limit: int) -> list[Relation]:
    """List the relations of an address to others."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM relations WHERE account_id = ? AND from_uri = ? ORDER BY to_uri LIMIT ?",
        (tx.account, uri, limit),
    )
    return [Relation(*row) for row in rows]


def list_below(tx: Tx, uri: str, limit: int) -> list[Relation]:
    """List the relations of an address, and of those below it, to others."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM relations WHERE account_id = ? AND {_AT_OR_BELOW.format('from_uri')}"
        " ORDER BY from_uri, to_uri LIMIT ?",
        (tx.account, *_range(uri), limit),
    )
    return [Relation(*row) for row in rows]


def move(tx: Tx, uri: str, new_uri: str) -> None:
    """Follow a move: replace an address, and those below it, in all relations.

    Nothing is at the new address, so relations that are left there belong to something that was removed.
    """
    for column in ("from_uri", "to_uri"):
        tx.execute(
            f"DELETE FROM relations WHERE account_id = ? AND {_AT_OR_BELOW.format(column)}",
            (tx.account, *_range(new_uri)),
        )
    for column in ("from_uri", "to_uri"):
        tx.execute(
            f"UPDATE relations SET {column} = CAST(? AS TEXT) || substr({column}, ?)"
            f" WHERE account_id = ? AND {_AT_OR_BELOW.format(column)}",
            (new_uri, len(uri) + 1, tx.account, *_range(uri)),
        )


def remove(tx: Tx, uri: str) -> None:
    """Delete the relations of an address, from and to others."""
    tx.execute("DELETE FROM relations WHERE account_id = ? AND (from_uri = ? OR to_uri = ?)", (tx.account, uri, uri))


def _range(uri: str) -> tuple[str, str, str]:
    return uri, f"{uri}/", f"{uri}0"
