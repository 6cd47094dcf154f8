"""The text index on SQLite: an FTS5 table. It lacks the pending messages of a log, which a search reads itself."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import apsw
import msgspec

from holdfast.json_documents import json_decoder
from holdfast.model.parts import Part
from holdfast.store.database import Params, TextEntry, Tx
from holdfast.store.index.scopes import of_log
from holdfast.text.words import indexed_words, searchable_text

DELETE_ACCOUNT = "DELETE FROM document_text WHERE rowid IN (SELECT n FROM documents WHERE account_id = ?)"
HITS = "SELECT rowid AS n FROM document_text WHERE document_text MATCH ?"
_MATCH = (
    "m.seq IN (SELECT d.number FROM document_text h CROSS JOIN documents d ON d.n = h.rowid"
    " WHERE h.document_text MATCH ? AND d.account_id = ? AND d.log_id = ? AND d.kind = 'message' UNION ALL"
    " SELECT seq FROM messages WHERE account_id = ? AND log_id = ? AND seq > (SELECT COALESCE(MAX(number), 0)"
    " FROM documents WHERE account_id = ? AND log_id = ? AND kind = 'message') AND matches_query(parts, ?))"
)
_decode = json_decoder(list[Part]).decode


def allocate(tx: Tx, count: int) -> list[int]:
    """Return numbers for new documents."""
    last = tx.one("SELECT seq FROM sqlite_sequence WHERE name = 'documents'")
    first = last[0] + 1 if last else 1
    return list(range(first, first + count))


def insert(tx: Tx, entries: Sequence[TextEntry]) -> None:
    for entry in entries:
        tx.execute("INSERT INTO document_text (rowid, scope, text) VALUES (?, ?, ?)", entry)


def delete(tx: Tx, numbers: Sequence[int]) -> None:
    tx.execute(f"DELETE FROM document_text WHERE rowid IN ({', '.join('?' * len(numbers))})", numbers)


def query(scopes: Sequence[Sequence[str]], words: Sequence[str]) -> Params:
    """Return the parameters of `HITS` for documents that have a term of each list of scopes, and all the words."""
    within = " AND ".join(f"({' OR '.join(terms)})" for terms in scopes)
    return [f"scope : ({within}) AND text : ({_all_of(words)})"]


def match(tx: Tx, log_id: int, words: list[str]) -> tuple[str, Params]:
    """Return an SQL condition on `messages m` that all words occur, and its parameters."""
    key = (tx.account, log_id)
    return _MATCH, [*query([[of_log(log_id)]], words), *key, *key, *key, _all_of(words)]


def _all_of(words: Sequence[str]) -> str:
    return " AND ".join(f'"{word}"' for word in words)


def register(connection: apsw.Connection) -> None:
    """Add the SQL function `matches_query(parts, query)`: whether a message matches a query as FTS5 would decide."""
    tokenizer = connection.fts5_tokenizer("porter", ["unicode61"])

    def tokenize(text: str, reason: int) -> frozenset[str]:
        tokens = tokenizer(text.encode(), reason, None, include_offsets=False, include_colocated=False)
        return frozenset(str(token) for token in tokens)

    def matches_query(*values: Any) -> bool:
        parts, query = values
        try:
            text = searchable_text(_decode(parts))
        except msgspec.MsgspecError:  # an unreadable row must not prevent searches
            return False
        words = parse_query(query)
        return bool(words) and tokenize(" ".join(indexed_words(text)), apsw.FTS5_TOKENIZE_DOCUMENT) >= words

    @lru_cache(maxsize=16)
    def parse_query(query: str) -> frozenset[str]:
        return tokenize(query.replace(" AND ", " "), apsw.FTS5_TOKENIZE_QUERY)

    connection.create_scalar_function("matches_query", matches_query, 2, deterministic=True)
