"""Which documents of an owner have the words of a query, by the text index alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from holdfast.store.access.search.places import encode_places, select_places
from holdfast.store.access.search.readable_documents import DocumentFilter, filter_conditions
from holdfast.store.database import Row, Tx
from holdfast.store.index import scopes
from holdfast.store.tables import documents
from holdfast.store.tables.documents import Document
from holdfast.store.tables.lineage import LogRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_SCOPES = 200
"""Up to so many logs are named in a query of the text index."""
DOCUMENT_COLUMNS = ", ".join(f"d.{field}" for field in Document._fields)
_COLUMNS = "n, log_id, number, kind, level, created_at, role, speaker"


class Hits(NamedTuple):
    documents: int
    """How many documents have the words, up to a limit."""
    numbers: "NDArray[np.int64]"
    """The numbers of these documents. There are none if the count has reached the limit."""


NO_HITS = Hits(0, np.zeros(0, np.int64))


def find_numbers(
    tx: Tx, owner_id: str, terms: Sequence[Sequence[str]], logs: Sequence[LogRange] | None, limit: int
) -> list[Hits]:
    """For each term, list the numbers of an owner's documents that have all its words, if fewer than `limit` have them.

    `logs` limits the search if there are few of them. The text index has no rows of documents: the caller looks the
    numbers up among the owner's documents, and ignores others.
    """
    within = [scopes.of_owner(tx.account, owner_id)]
    log_ids = list(dict.fromkeys(each.log_id for each in logs or ()))
    if logs is not None and len(log_ids) <= MAX_SCOPES:
        within = [scopes.of_log(log_id) for log_id in log_ids]
    if not within:
        return [NO_HITS for _ in terms]
    # One text with all numbers: a row for each would take several times as long.
    sql = f"SELECT COUNT(*), string_agg(CAST(n AS TEXT), ',') FROM ({tx.dialect.text_hits} LIMIT ?) AS h"
    statements = [(sql, [*tx.dialect.text_query([within], words), limit]) for words in terms if words]
    found = iter(tx.all_of(statements))
    return [to_hits(next(found)[0], limit) if words else NO_HITS for words in terms]


def to_hits(row: Row, limit: int) -> Hits:
    count, numbers = row
    if count >= limit:
        return Hits(count, NO_HITS.numbers)
    return Hits(count, np.fromstring(numbers or "", dtype=np.int64, sep=","))


def read_columns(tx: Tx, owner_id: str, after_version: int) -> list[Row]:
    """Read what a search filters by of an owner's documents of logs that were added after a version, by number."""
    return tx.all(
        f"SELECT {_COLUMNS} FROM documents WHERE account_id = ? AND owner_id = ? AND version > ?"
        " AND content_id IS NULL ORDER BY n",
        (tx.account, owner_id, after_version),
    )


def read_documents(tx: Tx, kind: str, places: Sequence[tuple[int, int]]) -> list[Document]:
    """Read documents of a kind by log and number; with log 0, by their own number."""
    in_logs = [place for place in places if place[0]]
    found = documents.read(tx, [number for log_id, number in places if not log_id])
    if in_logs:
        condition = "d.account_id = ? AND d.log_id = p.log_id AND d.kind = ? AND d.number = p.first_seq"
        sql = select_places(tx, DOCUMENT_COLUMNS, "documents d", condition)
        found += [Document(*row) for row in tx.all(sql, (encode_places(in_logs), tx.account, kind))]
    return found


def find_tagged(tx: Tx, owner_id: str, tags: Sequence[str]) -> list[int]:
    """List the numbers of an owner's documents with all of some tags."""
    where, params = filter_conditions(DocumentFilter(tags=tags))
    rows = tx.all(
        f"SELECT d.n FROM documents d WHERE {' AND '.join(['d.account_id = ? AND d.owner_id = ?', *where])}",
        (tx.account, owner_id, *params),
    )
    return [row[0] for row in rows]
