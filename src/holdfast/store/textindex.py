"""The text index on SQLite: an FTS5 table, and beside it a list of the latest texts.

FTS5 writes a segment of its own at every commit: for a single message, more pages than the message and all the rest.
So a text goes into the list, in the transaction of its message, and the list into the index once it is long.
A search looks in both. PostgreSQL's GIN index has its pending list for the same reason.
"""

from collections.abc import Callable
from typing import Any

import apsw

MOST_RECENT = 64
"""How long the list gets: a search reads all of it, so it stays short."""

INSERT = "INSERT INTO recent_text (n, text) VALUES (last_insert_rowid(), ?4)"
DELETE = tuple(
    f"DELETE FROM {table} IN (SELECT n FROM messages WHERE account_id = ? AND log_id = ? AND seq > ?)"
    for table in ("message_text WHERE rowid", "recent_text WHERE n")
)
_IS_LONG = f"SELECT MAX(n) - MIN(n) >= {MOST_RECENT} FROM recent_text"
_MOVE = "INSERT INTO message_text (rowid, text) SELECT n, text FROM recent_text ORDER BY n"
_CLEAR = "DELETE FROM recent_text"


def match(words: list[str]) -> tuple[str, list[str]]:
    """A condition on `messages m` for those that hold all words, and its parameters."""
    query = " AND ".join(f'"{word}"' for word in words)
    condition = (
        "m.n IN (SELECT rowid FROM message_text WHERE message_text MATCH ?"
        " UNION ALL SELECT n FROM recent_text WHERE holds(text, ?))"
    )
    return condition, [query, query]


def settle(execute: Callable[[str], apsw.Cursor]) -> None:
    """Move the list into the index if it has become long. Called at the end of a transaction that wrote."""
    (long,) = execute(_IS_LONG).fetchall()[0]
    if long:
        execute(_MOVE)
        execute(_CLEAR)


def register(connection: apsw.Connection) -> None:
    """Give the connection `holds(text, query)`, which says of a text what FTS5 would say of it."""
    cut = connection.fts5_tokenizer("porter", ["unicode61"])

    def tokens(text: str, reason: int) -> list[str]:
        return [str(each) for each in cut(text.encode(), reason, None, include_offsets=False, include_colocated=False)]

    def holds(*values: Any) -> bool:
        text, query = values
        said = tokens(text, apsw.FTS5_TOKENIZE_DOCUMENT)
        sought = (tokens(phrase, apsw.FTS5_TOKENIZE_QUERY) for phrase in query.split(" AND "))
        return all(_occurs(phrase, said) for phrase in sought)

    connection.create_scalar_function("holds", holds, 2, deterministic=True)


def _occurs(phrase: list[str], said: list[str]) -> bool:
    """Whether the words of a phrase stand next to each other; a phrase without words stands nowhere."""
    return bool(phrase) and any(said[at : at + len(phrase)] == phrase for at in range(len(said)))
