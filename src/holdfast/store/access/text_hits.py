"""Which documents of an owner have the words of a query, by the text index alone."""

from collections.abc import Sequence

import msgspec

from holdfast.store.access.readable_documents import DocumentFilter, filter_conditions
from holdfast.store.database import Row, Tx
from holdfast.store.index import scopes
from holdfast.store.tables import documents
from holdfast.store.tables.documents import Document
from holdfast.store.tables.lineage import LogRange

MAX_HITS = 50_000
"""Documents per word. A word that more documents have says nothing about what is searched for."""
MAX_SCOPES = 200
"""Up to so many logs are named in a query of the text index."""
MAX_PLACES = 200
"""How many documents one statement reads."""
DOCUMENT_COLUMNS = ", ".join(f"d.{field}" for field in Document._fields)
_COLUMNS = "n, version, log_id, number, kind, level, created_at, role, speaker"


def find_numbers(
    tx: Tx, owner_id: str, terms: Sequence[Sequence[str]], logs: Sequence[LogRange] | None
) -> list[list[int]]:
    """For each term, list the numbers of an owner's documents that have all its words; none if too many have them.

    `logs` limits the search if there are few of them. The text index has no rows of documents: the caller looks the
    numbers up among the owner's documents, and ignores others.
    """
    within = [scopes.of_owner(tx.account, owner_id)]
    log_ids = list(dict.fromkeys(each.log_id for each in logs or ()))
    if logs is not None and len(log_ids) <= MAX_SCOPES:
        within = [scopes.of_log(log_id) for log_id in log_ids]
    if not within:
        return [[] for _ in terms]
    sql = f"{tx.dialect.text_hits} LIMIT ?"
    statements = [(sql, [*tx.dialect.text_query([within], words), MAX_HITS]) for words in terms if words]
    found = iter(tx.all_of(statements))
    rows = [next(found) if words else [] for words in terms]
    return [[] if len(each) == MAX_HITS else [row[0] for row in each] for each in rows]


def read_columns(tx: Tx, owner_id: str, after_version: int) -> list[Row]:
    """Read what a search filters by of an owner's documents that were added after a version, by number."""
    return tx.all(
        f"SELECT {_COLUMNS} FROM documents WHERE account_id = ? AND owner_id = ? AND version > ? ORDER BY n",
        (tx.account, owner_id, after_version),
    )


def read_documents(tx: Tx, kind: str, places: Sequence[tuple[int, int]]) -> list[Document]:
    """Read documents of a kind by log and number; with log 0, by their own number."""
    in_logs = [place for place in places if place[0]]
    found = documents.read(tx, [number for log_id, number in places if not log_id])
    for first in range(0, len(in_logs), MAX_PLACES):
        chunk = [(log_id, number, number) for log_id, number in in_logs[first : first + MAX_PLACES]]
        rows = tx.all(
            f"SELECT {DOCUMENT_COLUMNS} FROM ({tx.dialect.ranges}) AS p CROSS JOIN documents d"
            " WHERE d.account_id = ? AND d.log_id = p.log_id AND d.kind = ? AND d.number = p.first_seq",
            (msgspec.json.encode(chunk).decode(), tx.account, kind),
        )
        found += [Document(*row) for row in rows]
    return found


def find_stale_logs(tx: Tx) -> list[int]:
    """List the logs of the account whose documents are not valid any more."""
    rows = tx.all("SELECT log_id FROM unindexed WHERE account_id = ? AND is_stale = 1", (tx.account,))
    return [row[0] for row in rows]


def find_filtered(tx: Tx, owner_id: str, tags: Sequence[str], uri_prefixes: Sequence[str]) -> list[int]:
    """List the numbers of an owner's documents with all of some tags, and with an address at or below a prefix."""
    wanted = DocumentFilter(tags=tags)
    where, params = filter_conditions(wanted)
    if uri_prefixes:
        below = [filter_conditions(DocumentFilter(uri_prefix=prefix)) for prefix in uri_prefixes]
        where.append(f"({' OR '.join(condition for conditions, _ in below for condition in conditions)})")
        params += [param for _, each in below for param in each]
    rows = tx.all(
        f"SELECT d.n FROM documents d WHERE {' AND '.join(['d.account_id = ? AND d.owner_id = ?', *where])}",
        (tx.account, owner_id, *params),
    )
    return [row[0] for row in rows]
