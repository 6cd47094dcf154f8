"""Documents of stored files: which of them there are, and which have the words of a query."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from holdfast.store.access.search.text_hits import NO_HITS, Hits, to_hits
from holdfast.store.database import Row, Tx
from holdfast.store.index import scopes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OF_OWNER = "account_id = ? AND owner_id = ? AND content_id IS NOT NULL"


def read_columns(tx: Tx, owner_id: str, after_version: int) -> list[Row]:
    """Read what a search filters by of an owner's documents that were added after a version, by number.

    A row has the number of the document, its content, its part, its kind, its level and how many words it has.
    """
    return tx.all(
        f"SELECT n, content_id, number, kind, level, word_count FROM documents WHERE {_OF_OWNER} AND version > ?"
        " ORDER BY n",
        (tx.account, owner_id, after_version),
    )


def list_numbers(tx: Tx, owner_id: str) -> "NDArray[np.int64]":
    """List the numbers of all documents of stored files of an owner."""
    sql = f"SELECT string_agg(CAST(n AS TEXT), ',') FROM documents WHERE {_OF_OWNER}"
    row = tx.one(sql, (tx.account, owner_id))
    return np.fromstring(row[0] or "" if row else "", dtype=np.int64, sep=",")


def find_numbers(
    tx: Tx, owner_ids: Sequence[str], kinds: Sequence[str], terms: Sequence[Sequence[str]], limit: int
) -> list[Hits]:
    """For each term, list the numbers of documents of some owners that have all its words, if fewer than `limit` do.

    The text index has no rows of documents: the caller looks the numbers up among the documents that may be read.
    """
    owners = [scopes.of_owner(tx.account, owner_id) for owner_id in owner_ids]
    within = [owners, [scopes.of_kind(kind) for kind in kinds]]
    sql = f"SELECT COUNT(*), string_agg(CAST(n AS TEXT), ',') FROM ({tx.dialect.text_hits} LIMIT ?) AS h"
    found = iter(tx.all_of([(sql, [*tx.dialect.text_query(within, words), limit]) for words in terms if words]))
    return [to_hits(next(found)[0], limit) if words else NO_HITS for words in terms]
