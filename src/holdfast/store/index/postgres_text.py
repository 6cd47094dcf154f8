"""The text index on PostgreSQL: the words of each message, added for several messages at once.

The words of one message cost the server as much as the rest of an append. A search also reads the messages that are
not indexed yet, so it finds every message.
"""

import msgspec

from holdfast.json_documents import json_decoder
from holdfast.model.parts import Part
from holdfast.store.database import Tx
from holdfast.text.words import searchable_text

DELETE = "DELETE FROM message_text WHERE account_id = ? AND log_id = ? AND seq > ?"
DELETE_ALL = "DELETE FROM message_text WHERE account_id = ?"

MAX_UNINDEXED = 15
"""How many messages at the end of a log are not indexed."""
MAX_UNINDEXED_BYTES = 10_000
"""A larger message is indexed at once, so that neither a search nor a later append has to read many large ones."""

# An array, so that the words are compared once for each message. A join would compare them once for each pair of
# messages in a table that has not been analysed yet.
_MATCH = (
    "m.seq = ANY(ARRAY(SELECT t.seq FROM message_text t WHERE t.account_id = ? AND t.log_id = ?"
    " AND t.words @@ to_tsquery('holdfast_text', ?)))"
)
_MATCH_TEXT = "SELECT to_tsvector('holdfast_text', ?) @@ to_tsquery('holdfast_text', ?)"
_READ_UNINDEXED = (
    "SELECT seq, parts FROM messages WHERE account_id = ? AND log_id = ? AND seq >"
    " COALESCE((SELECT MAX(seq) FROM message_text WHERE account_id = ? AND log_id = ?), 0) ORDER BY seq"
)
_decode_parts = json_decoder(list[Part]).decode


def update(tx: Tx, log_id: int, seq_before: int, seq: int, largest: int) -> None:
    """Index new messages of a log if enough are not indexed. `largest` is the size of the largest new one in bytes."""
    if seq // (MAX_UNINDEXED + 1) == seq_before // (MAX_UNINDEXED + 1) and largest <= MAX_UNINDEXED_BYTES:
        return
    params: list[str | int] = []
    unindexed = _read_unindexed(tx, log_id)
    for number, text in unindexed:
        params += [tx.account, log_id, number, text]
    rows = ", ".join(["(?, ?, ?, to_tsvector('holdfast_text', ?))"] * len(unindexed))
    tx.execute(f"INSERT INTO message_text (account_id, log_id, seq, words) VALUES {rows}", params)


def match(tx: Tx, log_id: int, words: list[str]) -> tuple[str, list[str | int]]:
    """An SQL condition that all the words occur in a message `m` of this log, and its parameters."""
    query = " & ".join(f"'{word}'" for word in words)
    unindexed = _read_unindexed(tx, log_id)
    matches = tx.all_of([(_MATCH_TEXT, (text, query)) for _, text in unindexed])
    found = [seq for (seq, _), [(is_match,)] in zip(unindexed, matches, strict=True) if is_match]
    params: list[str | int] = [tx.account, log_id, query]
    if not found:
        return _MATCH, params
    return f"({_MATCH} OR m.seq IN ({', '.join('?' * len(found))}))", [*params, *found]


def _read_unindexed(tx: Tx, log_id: int) -> list[tuple[int, str]]:
    rows = tx.all(_READ_UNINDEXED, (tx.account, log_id) * 2)
    return [(seq, _text(parts)) for seq, parts in rows]


def _text(parts: str) -> str:
    try:
        return searchable_text(_decode_parts(parts))
    except msgspec.MsgspecError:  # a damaged message must not prevent appends and searches
        return ""
