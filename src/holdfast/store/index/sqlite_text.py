"""The text index on SQLite: an FTS5 table that is up to 63 messages behind, and a search that reads those itself.

FTS5 writes a segment of its own at every commit: for a single message, more pages than the message and all the rest.
So a trigger takes messages into it 64 at a time. PostgreSQL's GIN index has its pending list for the same reason.
"""

from typing import Any

import apsw
import msgspec

from holdfast.model.parts import Part
from holdfast.text.words import indexed

DELETE = (
    "DELETE FROM message_text WHERE rowid IN (SELECT n FROM messages WHERE account_id = ? AND log_id = ? AND seq > ?)"
)
DELETE_ALL = "DELETE FROM message_text WHERE rowid IN (SELECT n FROM messages WHERE account_id = ?)"
_MATCH = (
    "m.n IN (SELECT rowid FROM message_text WHERE message_text MATCH ? UNION ALL"
    " SELECT n FROM messages WHERE n > (SELECT COALESCE(MAX(id), 0) FROM message_text_docsize)"
    " AND account_id = ? AND holds(parts, ?))"
)
_decode = msgspec.json.Decoder(list[Part]).decode


def match(account: str, words: list[str]) -> tuple[str, list[str]]:
    """A condition on `messages m` for those that hold all words, and its parameters."""
    query = " AND ".join(f'"{word}"' for word in words)
    # The account is a word of its own, so the index itself passes by what belongs to others.
    return _MATCH, [f"scope : a{account.encode().hex()} AND text : ({query})", account, query]


def register(connection: apsw.Connection) -> None:
    """Give the connection `indexed_text(parts)`, which the trigger calls, and `holds(parts, query)`.

    The latter says of a message what FTS5 would say of it.
    """
    cut = connection.fts5_tokenizer("porter", ["unicode61"])

    def tokens(text: str, reason: int) -> list[str]:
        return [str(each) for each in cut(text.encode(), reason, None, include_offsets=False, include_colocated=False)]

    def indexed_text(*values: Any) -> str:
        try:
            return indexed(_decode(values[0]))
        except msgspec.MsgspecError:  # a row that cannot be read must not stop those behind it
            return ""

    def holds(*values: Any) -> bool:
        parts, query = values
        said = tokens(indexed_text(parts), apsw.FTS5_TOKENIZE_DOCUMENT)
        sought = (tokens(phrase, apsw.FTS5_TOKENIZE_QUERY) for phrase in query.split(" AND "))
        return all(_occurs(phrase, said) for phrase in sought)

    for function, values in ((indexed_text, 1), (holds, 2)):
        # Innocuous: a trigger may call it although the schema is not trusted.
        connection.create_scalar_function(
            function.__name__, function, values, deterministic=True, flags=apsw.SQLITE_INNOCUOUS
        )


def _occurs(phrase: list[str], said: list[str]) -> bool:
    """Whether the words of a phrase stand next to each other; a phrase without words stands nowhere."""
    if len(phrase) == 1:
        return phrase[0] in said
    return bool(phrase) and any(said[at : at + len(phrase)] == phrase for at in range(len(said)))
