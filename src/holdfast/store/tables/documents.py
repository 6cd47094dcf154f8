"""Documents: what can be searched, with the statistics of each owner. The text index and the vectors follow them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from holdfast.store.database import Row, Statement, TextEntry, Tx
from holdfast.store.index import scopes
from holdfast.store.tables import unindexed

NOBODY = "-"
"""The owner of documents whose session is deleted, which only forks share. No user can have this name."""
MAX_ROWS = 100
"""How many documents one statement inserts or deletes."""
_COLUMNS = (
    "owner_id, kind, log_id, number, level, role, speaker, created_at, version, flags, word_count, dates, tags,"
    " words, content_id"
)
_OF_OWNER = "account_id = ? AND owner_id = ?"
_FORGET_ALL = (
    "DELETE FROM documents",
    "DELETE FROM vectors",
    "UPDATE index_owners SET version = version + 1, removed_version = version + 1, documents = 0, words = 0",
    "UPDATE sessions SET indexed_seq = fork_seq",
    "DELETE FROM unindexed",
    (
        "INSERT INTO unindexed (account_id, log_id, due_at, is_stale)"
        " SELECT account_id, log_id, 0, 0 FROM sessions UNION SELECT account_id, base_id, 0, 0 FROM lineage"
    ),
    "DELETE FROM unprocessed",
    (
        "INSERT INTO unprocessed (account_id, node_id, due_at)"
        " SELECT account_id, node_id, 0 FROM nodes WHERE removed_at IS NULL"
    ),
)


class NewDocument(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    log_id: int | None
    number: int
    """The sequence number of a message, or the number of the archive of an overview."""
    level: int
    role: str
    speaker: str
    created_at: int
    flags: int
    dates: str
    """The periods that the text names: a JSON list of pairs of days since 1970."""
    words: list[str]
    """The terms that a search ranks."""
    text: str
    """The words for the text index, with spaces between."""
    tags: str = "[]"
    content_id: int | None = None
    """The content of a stored file or folder that it is a part of. Then `number` is the part, and 0 the overview."""


class Document(NamedTuple):
    """A row of `documents`."""

    n: int
    owner_id: str
    kind: str
    log_id: int | None
    number: int
    level: int
    role: str
    speaker: str
    created_at: int
    version: int
    flags: int
    word_count: int
    dates: str
    tags: str
    words: str
    content_id: int | None


class OwnerStatistics(NamedTuple):
    version: int
    """It changes with each change of the owner's documents or vectors, in the order of commits."""
    removed_version: int
    """The version at which documents or vectors were last removed."""
    documents: int
    words: int
    account_created_at: int | None = None
    """When the account was created: another account may get the name of a deleted one."""


def change(tx: Tx, owner_id: str, *, documents: int = 0, words: int = 0, is_removal: bool = False) -> int:
    """Begin to change an owner's documents or vectors: return the version for its rows, and count what is added.

    No other transaction changes documents or vectors of the owner until this one ends.
    """
    row = tx.one(
        "INSERT INTO index_owners AS o (account_id, owner_id, version, removed_version, documents, words)"
        " VALUES (?, ?, 1, ?, ?, ?) ON CONFLICT (account_id, owner_id) DO UPDATE SET version = o.version + 1,"
        " removed_version = CASE WHEN excluded.removed_version = 1 THEN o.version + 1 ELSE o.removed_version END,"
        " documents = o.documents + excluded.documents, words = o.words + excluded.words RETURNING version",
        (tx.account, owner_id, int(is_removal), documents, words),
    )
    return int(row[0]) if row else 0


def statistics(tx: Tx, owner_id: str) -> OwnerStatistics:
    return to_statistics(tx.all(*select_statistics(tx, owner_id)))


def select_statistics(tx: Tx, owner_id: str) -> Statement:
    """Return the statement that reads the statistics of an owner, for `to_statistics`."""
    sql = (
        "SELECT version, removed_version, documents, words, (SELECT a.created_at FROM accounts a"
        f" WHERE a.account_id = index_owners.account_id) FROM index_owners WHERE {_OF_OWNER}"
    )
    return sql, (tx.account, owner_id)


def to_statistics(rows: Sequence[Row]) -> OwnerStatistics:
    return OwnerStatistics(*rows[0]) if rows else OwnerStatistics(0, 0, 0, 0)


def insert(tx: Tx, owner_id: str, documents: Sequence[NewDocument]) -> list[int]:
    """Add documents of an owner, with their entries in the text index. Return their numbers."""
    if not documents:
        return []
    version = change(tx, owner_id, documents=len(documents), words=sum(len(each.words) for each in documents))
    numbers = tx.dialect.allocate_documents(tx, len(documents))
    for first in range(0, len(documents), MAX_ROWS):
        rows = list(zip(numbers, documents, strict=True))[first : first + MAX_ROWS]
        _insert_rows(tx, owner_id, version, rows)
        tx.dialect.insert_text(tx, [TextEntry(n, _scope(tx, owner_id, each), each.text) for n, each in rows])
    return numbers


def _insert_rows(tx: Tx, owner_id: str, version: int, rows: Sequence[tuple[int, NewDocument]]) -> None:
    params: list[str | int | None] = []
    for n, each in rows:
        params += (n, tx.account, owner_id, each.kind, each.log_id, each.number, each.level, each.role, each.speaker)
        params += (each.created_at, version, each.flags, len(each.words), each.dates, each.tags)
        params += (" ".join(each.words), each.content_id)
    marks = f"({', '.join('?' * (_COLUMNS.count(',') + 3))})"
    tx.execute(f"INSERT INTO documents (n, account_id, {_COLUMNS}) VALUES {', '.join([marks] * len(rows))}", params)


def _scope(tx: Tx, owner_id: str, document: NewDocument) -> str:
    terms = [scopes.of_account(tx.account), scopes.of_owner(tx.account, owner_id), scopes.of_kind(document.kind)]
    if document.log_id is not None:
        terms.append(scopes.of_log(document.log_id))
    return " ".join(terms)


def read(tx: Tx, numbers: Sequence[int]) -> list[Document]:
    """Read documents by their numbers, in the order of these. Missing ones are left out."""
    found: dict[int, Document] = {}
    for first in range(0, len(numbers), MAX_ROWS):
        chunk = numbers[first : first + MAX_ROWS]
        rows = tx.all(
            f"SELECT n, {_COLUMNS} FROM documents WHERE account_id = ? AND n IN ({_marks(chunk)})",
            (tx.account, *chunk),
        )
        found.update((row[0], Document(*row)) for row in rows)
    return [found[n] for n in numbers if n in found]


def last_number(tx: Tx, log_id: int, kind: str = "message") -> int:
    """The number of the last document of a log, or 0. Messages are indexed in order."""
    row = tx.one(
        "SELECT MAX(number) FROM documents WHERE account_id = ? AND log_id = ? AND kind = ?", (tx.account, log_id, kind)
    )
    return row[0] or 0 if row else 0


def delete_messages_after(tx: Tx, log_id: int, seq: int) -> None:
    """Delete the documents of messages of a log after `seq`."""
    while _delete(tx, "log_id = ? AND kind = 'message' AND number > ?", (log_id, seq), MAX_ROWS) == MAX_ROWS:
        pass


def delete_slice(tx: Tx, log_id: int, limit: int) -> int:
    """Delete up to `limit` documents of a log, the last ones first. Return how many."""
    return _delete(tx, "log_id = ?", (log_id,), limit)


def owner_of_content(tx: Tx, content_id: int) -> str | None:
    """Return the owner of the documents of a content; None if it has none."""
    row = tx.one(
        "SELECT owner_id FROM documents WHERE account_id = ? AND content_id = ? LIMIT 1", (tx.account, content_id)
    )
    return None if row is None else str(row[0])


def lock_owners(tx: Tx, content_ids: Sequence[int], owner_ids: Iterable[str] = ()) -> None:
    """Lock some owners, and those of the documents of some contents, in one order: so transactions cannot deadlock."""
    if not tx.dialect.lock_row:
        return
    rows = (
        tx.all(
            f"SELECT DISTINCT owner_id FROM documents WHERE account_id = ? AND content_id IN ({_marks(content_ids)})",
            (tx.account, *content_ids),
        )
        if content_ids
        else []
    )
    found = sorted({*owner_ids, *(row[0] for row in rows)})
    for owner_id in found if len(found) > 1 else ():
        change(tx, owner_id)


def delete_of_content(tx: Tx, content_id: int) -> None:
    """Delete the documents of a content."""
    while _delete(tx, "content_id = ?", (content_id,), MAX_ROWS) == MAX_ROWS:
        pass


def delete_others(tx: Tx, log_id: int, limit: int) -> int:
    """Delete up to `limit` documents of a log that are no messages. Return how many."""
    return _delete(tx, "log_id = ? AND kind <> 'message'", (log_id,), limit)


def forget_overviews(tx: Tx, log_id: int, numbers: Sequence[int]) -> None:
    """Let the overviews of some archives be indexed, again if they were before."""
    unindexed.add(tx, log_id)
    for first in range(0, len(numbers), MAX_ROWS):
        chunk = numbers[first : first + MAX_ROWS]
        _delete(tx, f"log_id = ? AND kind = 'overview' AND number IN ({_marks(chunk)})", (log_id, *chunk), MAX_ROWS)


def forget_all(tx: Tx) -> None:
    """Delete all documents and vectors of all accounts, whose text index is empty. Everything is indexed again."""
    for sql in _FORGET_ALL:
        tx.execute(sql)


def _delete(tx: Tx, condition: str, params: Sequence[str | int], limit: int) -> int:
    """Delete up to `limit` documents with their text and their vectors. Return how many."""
    rows = tx.all(
        f"SELECT n, owner_id, word_count FROM documents WHERE account_id = ? AND {condition}"
        " ORDER BY kind DESC, number DESC LIMIT ?",
        (tx.account, *params, limit),
    )
    for owner_id in sorted({row[1] for row in rows}):  # transactions that lock rows in one order cannot deadlock
        owned = [(n, words) for n, owner, words in rows if owner == owner_id]
        change(tx, owner_id, documents=-len(owned), words=-sum(words for _, words in owned), is_removal=True)
        for first in range(0, len(owned), MAX_ROWS):
            numbers = [n for n, _ in owned[first : first + MAX_ROWS]]
            tx.dialect.delete_text(tx, numbers)
            _delete_vectors(tx, owner_id, numbers)
            tx.execute(
                f"DELETE FROM documents WHERE account_id = ? AND n IN ({_marks(numbers)})", (tx.account, *numbers)
            )
    return len(rows)


def _delete_vectors(tx: Tx, owner_id: str, numbers: Sequence[int]) -> None:
    space = ""
    while True:
        row = tx.one(f"SELECT MIN(space) FROM vectors WHERE {_OF_OWNER} AND space > ?", (tx.account, owner_id, space))
        if row is None or row[0] is None:
            return
        space = row[0]
        tx.execute(
            f"DELETE FROM vectors WHERE {_OF_OWNER} AND space = ? AND n IN ({_marks(numbers)})",
            (tx.account, owner_id, space, *numbers),
        )


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" * len(values)) or "NULL"
