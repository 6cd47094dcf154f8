"""The text index on SQLite: an FTS5 table that may lack the last 63 messages. A search scans those itself.

FTS5 writes a new segment at every commit, which for a single message takes more pages than the message itself.
Therefore a trigger adds messages to the index 64 at a time. `postgres_text` does the same for another
reason. A large message is indexed at once, with those before it.
"""

from functools import lru_cache
from typing import Any

import apsw
import msgspec

from holdfast.json_documents import json_decoder
from holdfast.model.parts import Part
from holdfast.store.database import Tx
from holdfast.text.words import searchable_text

DELETE = (
    "DELETE FROM message_text WHERE rowid IN (SELECT n FROM messages WHERE account_id = ? AND log_id = ? AND seq > ?)"
)
DELETE_ALL = "DELETE FROM message_text WHERE rowid IN (SELECT n FROM messages WHERE account_id = ?)"
_MATCH = (
    "m.n IN (SELECT rowid FROM message_text WHERE message_text MATCH ? UNION ALL"
    " SELECT n FROM messages WHERE n > (SELECT COALESCE(MAX(id), 0) FROM message_text_docsize)"
    " AND account_id = ? AND matches_query(parts, ?))"
)
_decode = json_decoder(list[Part]).decode


MAX_UNINDEXED_CHARS = 10_000
"""A larger message is indexed at once, so that neither a search nor a later append has to read many large ones."""
_INDEX = (  # as the trigger does
    "INSERT INTO message_text (rowid, scope, text) SELECT n, 'a' || hex(account_id), indexed_text(parts) FROM messages"
    " WHERE n > (SELECT COALESCE(MAX(id), 0) FROM message_text_docsize) ORDER BY n"
)


def update(tx: Tx, _log_id: int, _seq_before: int, _seq: int, largest: int) -> None:
    """Index all messages that are not indexed, if the largest new one has too many characters to wait."""
    if largest > MAX_UNINDEXED_CHARS:
        tx.execute(_INDEX, ())


def match(tx: Tx, _log_id: int, words: list[str]) -> tuple[str, list[str]]:
    """An SQL condition on `messages m` that all words occur, and its parameters."""
    query = " AND ".join(f'"{word}"' for word in words)
    # The account is indexed as a term, so that the index itself skips messages of other accounts.
    return _MATCH, [f"scope : a{tx.account.encode().hex()} AND text : ({query})", tx.account, query]


def register(connection: apsw.Connection) -> None:
    """Add the SQL functions `indexed_text(parts)`, which the trigger calls, and `matches_query(parts, query)`.

    `matches_query` decides whether a message matches a query as FTS5 would.
    """
    tokenizer = connection.fts5_tokenizer("porter", ["unicode61"])

    def tokenize(text: str, reason: int) -> list[str]:
        tokens = tokenizer(text.encode(), reason, None, include_offsets=False, include_colocated=False)
        return [str(token) for token in tokens]

    def indexed_text(*values: Any) -> str:
        try:
            return searchable_text(_decode(values[0]))
        except msgspec.MsgspecError:  # an unreadable row must not prevent the indexing of later rows
            return ""

    def matches_query(*values: Any) -> bool:
        parts, query = values
        return _occur(parse_query(query), tokenize(indexed_text(parts), apsw.FTS5_TOKENIZE_DOCUMENT))

    @lru_cache(maxsize=16)
    def parse_query(query: str) -> list[list[str]]:
        """Return the tokens of each phrase of a query."""
        return [tokenize(phrase, apsw.FTS5_TOKENIZE_QUERY) for phrase in query.split(" AND ")]

    for function, parameter_count in ((indexed_text, 1), (matches_query, 2)):
        # Innocuous: a trigger may call the function although the schema is not trusted.
        connection.create_scalar_function(
            function.__name__, function, parameter_count, deterministic=True, flags=apsw.SQLITE_INNOCUOUS
        )


def _occur(phrases: list[list[str]], tokens: list[str]) -> bool:
    """Whether the tokens of each phrase occur in sequence. An empty phrase does not occur."""
    distinct = frozenset(tokens)
    if not all(phrase and distinct.issuperset(phrase) for phrase in phrases):
        return False
    sequences = [phrase for phrase in phrases if len(phrase) > 1]
    text = f" {' '.join(tokens)} " if sequences else ""
    return all(f" {' '.join(phrase)} " in text for phrase in sequences)
