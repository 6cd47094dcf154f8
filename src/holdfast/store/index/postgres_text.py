"""The text index on PostgreSQL: the words of each document. It lacks pending messages, which a search reads itself."""

from collections.abc import Sequence

import msgspec

from holdfast.json_documents import json_decoder
from holdfast.model.parts import Part
from holdfast.store.database import Params, TextEntry, Tx
from holdfast.store.index.scopes import of_log
from holdfast.text.words import indexed_words, searchable_text

DELETE_ACCOUNT = "DELETE FROM document_words w USING documents d WHERE d.n = w.n AND d.account_id = ?"
HITS = "SELECT n FROM document_words WHERE words @@ (?::tsquery && to_tsquery('holdfast_text', ?))"
# Arrays, so that the words are compared once for each document. A join would compare them once for each pair of
# messages in a table that has not been analysed yet.
_MATCH = (
    f"m.seq = ANY(ARRAY(SELECT d.number FROM documents d WHERE d.n = ANY(ARRAY({HITS}))"
    " AND d.account_id = ? AND d.log_id = ? AND d.kind = 'message'))"
)
_MATCH_TEXTS = (
    "SELECT t.seq FROM json_to_recordset(?::json) AS t (seq bigint, words text)"
    " WHERE to_tsvector('holdfast_text', t.words) @@ to_tsquery('holdfast_text', ?)"
)
_READ_PENDING = (
    "SELECT seq, parts FROM messages WHERE account_id = ? AND log_id = ? AND seq > (SELECT COALESCE(MAX(number), 0)"
    " FROM documents WHERE account_id = ? AND log_id = ? AND kind = 'message') ORDER BY seq"
)
_ENTRY = "(?, array_to_tsvector(string_to_array(?, ' ')) || strip(to_tsvector('holdfast_text', ?)))"
_decode_parts = json_decoder(list[Part]).decode


def allocate(tx: Tx, count: int) -> list[int]:
    """Return numbers for new documents."""
    rows = tx.all("SELECT nextval(pg_get_serial_sequence('documents', 'n')) FROM generate_series(1, ?)", (count,))
    return [row[0] for row in rows]


def insert(tx: Tx, entries: Sequence[TextEntry]) -> None:
    params: list[str | int] = []
    for n, scope, words in entries:
        params += (n, " ".join(_lexeme(term) for term in scope.split()), words)
    tx.execute(f"INSERT INTO document_words (n, words) VALUES {', '.join([_ENTRY] * len(entries))}", params)


def delete(tx: Tx, numbers: Sequence[int]) -> None:
    tx.execute(f"DELETE FROM document_words WHERE n IN ({', '.join('?' * len(numbers))})", numbers)


def query(scopes: Sequence[Sequence[str]], words: Sequence[str]) -> Params:
    """Return the parameters of `HITS` for documents that have a term of each list of scopes, and all the words."""
    alternatives = (" | ".join(f"'{_lexeme(term)}'" for term in terms) for terms in scopes)
    return [" & ".join(f"({each})" for each in alternatives), _all_of(words)]


def match(tx: Tx, log_id: int, words: list[str]) -> tuple[str, Params]:
    """Return an SQL condition on `messages m` that all words occur, and its parameters."""
    found = _search_pending(tx, log_id, _all_of(words))
    params = [*query([[of_log(log_id)]], words), tx.account, log_id]
    if not found:
        return _MATCH, params
    return f"({_MATCH} OR m.seq IN ({', '.join('?' * len(found))}))", [*params, *found]


def _search_pending(tx: Tx, log_id: int, words: str) -> list[int]:
    rows = tx.all(_READ_PENDING, (tx.account, log_id) * 2)
    if not rows:
        return []
    texts = msgspec.json.encode([{"seq": seq, "words": _text(parts)} for seq, parts in rows]).decode()
    return [row[0] for row in tx.all(_MATCH_TEXTS, (texts, words))]


def _text(parts: str) -> str:
    try:
        return " ".join(indexed_words(searchable_text(_decode_parts(parts))))
    except msgspec.MsgspecError:  # a damaged message must not prevent searches
        return ""


def _lexeme(term: str) -> str:
    """The term of a scope as a lexeme that is no word of a text."""
    return f":{term}"


def _all_of(words: Sequence[str]) -> str:
    return " & ".join(f"'{word}'" for word in words)
