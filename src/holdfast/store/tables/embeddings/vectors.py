"""The vectors of documents, and how far the documents of each owner have them.

A vector is stored as little-endian float16. Its space names the embedder: vectors of two spaces are never compared.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.store.database import Row, Tx
from holdfast.store.tables import documents
from holdfast.store.tables.lineage import LogRange

MAX_ROWS = 100
"""How many vectors one statement inserts."""
_OF_OWNER = "account_id = ? AND owner_id = ?"
_OF_SPACE = f"{_OF_OWNER} AND space = ?"
_SELECT = (
    "SELECT v.n, d.log_id, d.number, d.kind, d.level, d.created_at, v.version, v.vector"
    " FROM vectors v JOIN documents d ON d.n = v.n AND d.account_id = v.account_id"
    " WHERE v.account_id = ? AND v.owner_id = ? AND v.space = ?"
)


class VectorFilter(NamedTuple):
    """Which documents may be found. An empty sequence, or None, means all."""

    kinds: Sequence[str] = ()
    levels: Sequence[int] = ()
    ranges: Sequence[LogRange] | None = None
    """The parts of logs that may be read. A range up to `WHOLE_LOG` also opens other kinds than messages."""
    without_logs: Sequence[int] = ()
    since: int | None = None
    until: int | None = None
    """Documents from `since` on, and before `until`, in microseconds."""


EVERYTHING = VectorFilter()


class Spaces(NamedTuple):
    """The spaces of an account."""

    space: str
    """The space that searches use."""
    next_space: str | None
    """The space that is being filled to replace it."""


class Position(NamedTuple):
    """How far the vectors of an owner are complete, in the order of versions, then of numbers."""

    version: int
    n: int


START = Position(0, 0)


class DocumentToEmbed(NamedTuple):
    n: int
    kind: str
    log_id: int | None
    number: int
    version: int
    content_id: int | None

    @property
    def position(self) -> Position:
        return Position(self.version, self.n)


def find_spaces(tx: Tx) -> Spaces | None:
    """Find the spaces of the account, or None if it has no vectors yet."""
    row = tx.one("SELECT space, next_space FROM vector_spaces WHERE account_id = ?", (tx.account,))
    return Spaces(*row) if row else None


def lock_spaces(tx: Tx, space: str) -> Spaces:
    """Lock the row of the account, and return its spaces. If there is none yet, `space` is used from now on."""
    tx.execute(
        "INSERT INTO vector_spaces (account_id, space) VALUES (?, ?) ON CONFLICT DO NOTHING", (tx.account, space)
    )
    row = tx.one(
        f"SELECT space, next_space FROM vector_spaces WHERE account_id = ?{tx.dialect.lock_row}", (tx.account,)
    )
    return Spaces(*row) if row else Spaces(space, None)


def hold_spaces(tx: Tx) -> Spaces | None:
    """Find the spaces of the account, and let no other transaction change them until this one ends."""
    share = " FOR SHARE" if tx.dialect.lock_row else ""
    row = tx.one(f"SELECT space, next_space FROM vector_spaces WHERE account_id = ?{share}", (tx.account,))
    return Spaces(*row) if row else None


def store_spaces(tx: Tx, spaces: Spaces) -> None:
    tx.execute(
        "UPDATE vector_spaces SET space = ?, next_space = ? WHERE account_id = ?",
        (spaces.space, spaces.next_space, tx.account),
    )


def list_owners(tx: Tx, *, after: str | None, limit: int) -> list[str]:
    """List the owners of documents of the account. Documents of a deleted session belong to `documents.NOBODY`."""
    condition, params = ("TRUE", ()) if after is None else ("owner_id > ?", (after,))
    rows = tx.all(
        f"SELECT owner_id FROM index_owners WHERE account_id = ? AND {condition} ORDER BY owner_id LIMIT ?",
        (tx.account, *params, limit),
    )
    return [row[0] for row in rows]


def count_documents(tx: Tx) -> int:
    row = tx.one("SELECT COALESCE(SUM(documents), 0) FROM index_owners WHERE account_id = ?", (tx.account,))
    return int(row[0]) if row else 0


def lock_owner(tx: Tx, owner_id: str) -> None:
    """Let no other transaction change documents or vectors of the owner until this one ends."""
    tx.one(f"SELECT 1 FROM index_owners WHERE {_OF_OWNER}{tx.dialect.lock_row}", (tx.account, owner_id))


def position(tx: Tx, owner_id: str, space: str) -> Position:
    row = tx.one(f"SELECT version, n FROM embedded WHERE {_OF_SPACE}", (tx.account, owner_id, space))
    return Position(*row) if row else START


def documents_to_embed(tx: Tx, owner_id: str, after: Position, limit: int) -> list[DocumentToEmbed]:
    """List documents of an owner after a position, in order."""
    rows = tx.all(
        f"SELECT n, kind, log_id, number, version, content_id FROM documents WHERE {_OF_OWNER} AND version >= ?"
        " AND (version > ? OR n > ?) ORDER BY version, n LIMIT ?",
        (tx.account, owner_id, after.version, after.version, after.n, limit),
    )
    return [DocumentToEmbed(*row) for row in rows]


def insert(
    tx: Tx, owner_id: str, space: str, embedded: Sequence[tuple[DocumentToEmbed, bytes]], through: Position
) -> int:
    """Add vectors, and record that documents through a position have them. Return how many were added.

    A document that was deleted since it was read gets none. The owner is locked before anything else is.
    """
    version = documents.change(tx, owner_id)
    rows = [(document, vector) for document, vector in embedded if vector]
    existing = _existing(tx, owner_id, [document for document, _ in rows])
    rows = [(document, vector) for document, vector in rows if document.position in existing]
    for first in range(0, len(rows), MAX_ROWS):
        params: list[str | int | bytes] = []
        for document, vector in rows[first : first + MAX_ROWS]:
            params += (tx.account, owner_id, space, document.n, version, vector)
        marks = ", ".join(["(?, ?, ?, ?, ?, ?)"] * (len(params) // 6))
        tx.execute(
            f"INSERT INTO vectors (account_id, owner_id, space, n, version, vector) VALUES {marks}"
            " ON CONFLICT (account_id, owner_id, space, n)"
            " DO UPDATE SET version = excluded.version, vector = excluded.vector",
            params,
        )
    store_position(tx, owner_id, space, through)
    return len(rows)


def store_position(tx: Tx, owner_id: str, space: str, through: Position) -> None:
    """Record how far vectors are complete. Another task may already be further."""
    tx.execute(
        "INSERT INTO embedded AS e (account_id, owner_id, space, version, n) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (account_id, owner_id, space) DO UPDATE SET version = excluded.version, n = excluded.n"
        " WHERE (excluded.version, excluded.n) > (e.version, e.n)",
        (tx.account, owner_id, space, *through),
    )


def _existing(tx: Tx, owner_id: str, embedded: Sequence[DocumentToEmbed]) -> set[Position]:
    """The positions of the documents that still exist. The number of a deleted document may belong to another one."""
    if not embedded:
        return set()
    versions = [document.version for document in embedded]
    rows = tx.all(
        f"SELECT version, n FROM documents WHERE {_OF_OWNER} AND version BETWEEN ? AND ?",
        (tx.account, owner_id, min(versions), max(versions)),
    )
    return {Position(*row) for row in rows}


def read_page(tx: Tx, owner_id: str, space: str, *, after: int, limit: int) -> list[Row]:
    """Read vectors of documents with a number greater than `after`, by their numbers.

    A row has the number of its document, its log, its number there, its kind, level and time, the version, and the
    vector.
    """
    return tx.all(
        f"{_SELECT} AND v.n > ? ORDER BY v.n LIMIT ?",
        (tx.account, owner_id, space, after, limit),
    )


def read_added(tx: Tx, owner_id: str, space: str, version: int, limit: int) -> list[Row]:
    """Read up to `limit` vectors that were added after a version, in the order of versions, as `read_page` does."""
    return tx.all(
        f"{_SELECT} AND v.version > ? ORDER BY v.version LIMIT ?",
        (tx.account, owner_id, space, version, limit),
    )


def read_newer_page(tx: Tx, owner_id: str, space: str, version: int, after: int, limit: int) -> list[Row]:
    """Read vectors that were added after a version, by their numbers, from the number after `after` on."""
    return tx.all(
        f"{_SELECT} AND v.version > ? AND v.n > ? ORDER BY v.n LIMIT ?",
        (tx.account, owner_id, space, version, after, limit),
    )


def is_used(tx: Tx, space: str) -> bool:
    """Whether a space is one of the account's, and stays so until the transaction ends."""
    return space in (hold_spaces(tx) or ())


def read_logs(tx: Tx, owner_id: str, space: str, log_ids: Sequence[int], limit: int) -> list[Row]:
    """Read up to `limit` vectors of the documents of some logs, as `read_page` does."""
    found: list[Row] = []
    for first in range(0, len(log_ids), MAX_ROWS):
        chunk = log_ids[first : first + MAX_ROWS]
        found += tx.all(
            f"{_SELECT} AND d.log_id IN ({', '.join('?' * len(chunk))}) LIMIT ?",
            (tx.account, owner_id, space, *chunk, limit - len(found)),
        )
        if len(found) >= limit:
            break
    return found


def count_in_logs(tx: Tx, log_ids: Sequence[int], limit: int) -> int:
    """Count the documents of some logs, up to `limit`."""
    count = 0
    for first in range(0, len(log_ids), MAX_ROWS):
        chunk = log_ids[first : first + MAX_ROWS]
        row = tx.one(
            "SELECT COUNT(*) FROM (SELECT 1 FROM documents WHERE account_id = ?"
            f" AND log_id IN ({', '.join('?' * len(chunk))}) LIMIT ?) AS found",
            (tx.account, *chunk, limit - count),
        )
        count += int(row[0]) if row else 0
        if count >= limit:
            break
    return count


def count_added(tx: Tx, owner_id: str, space: str, version: int, limit: int) -> int:
    """Count the vectors of an owner that were added after a version, up to `limit`."""
    row = tx.one(
        f"SELECT COUNT(*) FROM (SELECT 1 FROM vectors WHERE {_OF_SPACE} AND version > ? LIMIT ?) AS found",
        (tx.account, owner_id, space, version, limit),
    )
    return int(row[0]) if row else 0


def dimensions(tx: Tx, owner_id: str, space: str) -> int:
    """Return the length of the vectors of an owner, or 0 if there are none."""
    row = tx.one(f"SELECT vector FROM vectors WHERE {_OF_SPACE} LIMIT 1", (tx.account, owner_id, space))
    return len(row[0]) // 2 if row else 0


def read_sample(tx: Tx, owner_id: str, space: str, places: int, rows: int) -> list[Row]:
    """Read `rows` vectors in a row at each of `places` places, evenly distributed over the numbers of documents."""
    key = (tx.account, owner_id, space)
    bounds = tx.one(f"SELECT MIN(n), MAX(n) FROM vectors WHERE {_OF_SPACE}", key)
    if bounds is None or bounds[0] is None:
        return []
    first, last = bounds
    starts = sorted({first + (last - first) * place // places - 1 for place in range(places)})
    pages = tx.all_of([(f"{_SELECT} AND v.n > ? ORDER BY v.n LIMIT ?", (*key, start, rows)) for start in starts])
    return list({row[0]: row for page in pages for row in page}.values())


def read_some(tx: Tx, owner_id: str, space: str, numbers: Sequence[int]) -> list[tuple[int, bytes]]:
    """Read the vectors of some documents."""
    found: list[tuple[int, bytes]] = []
    for first in range(0, len(numbers), MAX_ROWS):
        chunk = numbers[first : first + MAX_ROWS]
        rows = tx.all(
            f"SELECT n, vector FROM vectors WHERE {_OF_SPACE} AND n IN ({', '.join('?' * len(chunk))})",
            (tx.account, owner_id, space, *chunk),
        )
        found += [(n, vector) for n, vector in rows]
    return found


def list_numbers(tx: Tx, owner_id: str, space: str) -> list[int]:
    """List the numbers of the documents of an owner that have a vector."""
    rows = tx.all(f"SELECT n FROM vectors WHERE {_OF_SPACE}", (tx.account, owner_id, space))
    return [row[0] for row in rows]


def delete_other_spaces(tx: Tx, kept: str, limit: int) -> int:
    """Delete up to `limit` vectors of the account that are of another space. Return 0 if there are none left.

    The versions of owners stay: nobody reads these spaces any more.
    """
    others = tx.all(
        "SELECT owner_id, space FROM embedded WHERE account_id = ? AND space <> ? LIMIT 20", (tx.account, kept)
    )
    deleted = 0
    for owner_id, space in others:
        rows = tx.all(
            f"DELETE FROM vectors WHERE {_OF_SPACE} AND n IN (SELECT n FROM vectors WHERE {_OF_SPACE} LIMIT ?)"
            " RETURNING 1",
            (*(tx.account, owner_id, space) * 2, limit - deleted),
        )
        deleted += len(rows)
        if deleted >= limit:
            return deleted
        tx.execute(f"DELETE FROM embedded WHERE {_OF_SPACE}", (tx.account, owner_id, space))
    return deleted + len(others)
