"""The text index on SQLite: an FTS5 table that may lack the last 63 messages. A search scans those itself.

FTS5 writes a new segment at every commit, which for a single message takes more pages than the message itself.
Therefore a trigger adds messages to the index 64 at a time.
"""

from typing import Any

import apsw
import msgspec

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
_decode = msgspec.json.Decoder(list[Part]).decode


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
        tokens = tokenize(indexed_text(parts), apsw.FTS5_TOKENIZE_DOCUMENT)
        phrases = (tokenize(phrase, apsw.FTS5_TOKENIZE_QUERY) for phrase in query.split(" AND "))
        return all(_occurs(phrase, tokens) for phrase in phrases)

    for function, parameter_count in ((indexed_text, 1), (matches_query, 2)):
        # Innocuous: a trigger may call the function although the schema is not trusted.
        connection.create_scalar_function(
            function.__name__, function, parameter_count, deterministic=True, flags=apsw.SQLITE_INNOCUOUS
        )


def _occurs(phrase: list[str], tokens: list[str]) -> bool:
    """Whether the tokens of a phrase occur in sequence. An empty phrase does not occur."""
    if len(phrase) == 1:
        return phrase[0] in tokens
    return bool(phrase) and any(tokens[at : at + len(phrase)] == phrase for at in range(len(tokens)))
