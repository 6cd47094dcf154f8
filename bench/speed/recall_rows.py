"""Documents of very many messages, inserted with a few statements: indexing a million of them one by one takes long."""

from collections.abc import Sequence

import msgspec
import numpy as np

import holdfast
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.providers.static_vectors import StaticEmbedder
from holdfast.store.database import TextEntry, Tx
from holdfast.store.index import scopes
from texts import Texts

ACCOUNT = OWNER = "default"
SESSION_MESSAGES = 100
"""Messages of a session. Documents of the owner and of others alternate session by session."""
TEMPLATES = 20_000
"""Different texts of other owners. The owner's texts all differ."""
OTHER_OWNERS = 90
FIRST_OTHER_LOG = 1_000_000_000
_ROWS = 100
_EMBEDDED = 1_000
_COLUMNS = (
    "n, account_id, owner_id, kind, log_id, number, level, role, speaker, created_at, version, flags, word_count,"
    " dates, tags, words"
)
_LEXEMES = "array_to_tsvector(string_to_array(':' || replace({scope}, ' ', ' :'), ' '))"
"""The terms of a scope as lexemes of PostgreSQL."""
_CREATE_INDEX = "CREATE INDEX document_words_by_word ON document_words USING gin (words) WITH (fastupdate = off)"
_AFTERWARDS = (
    (
        "UPDATE sessions SET indexed_seq = (SELECT MAX(m.seq) FROM messages m WHERE m.account_id = sessions.account_id"
        " AND m.log_id = sessions.log_id)"
    ),
    "DELETE FROM unindexed",
    (
        "INSERT INTO index_owners (account_id, owner_id, version, removed_version, documents, words)"
        " SELECT account_id, owner_id, 1, 0, COUNT(*), SUM(word_count) FROM documents GROUP BY account_id, owner_id"
    ),
)


class RecallRows(msgspec.Struct, frozen=True):
    """How many messages there are. Both numbers are multiples of `SESSION_MESSAGES`."""

    own: int
    all: int

    @property
    def step(self) -> int:
        """Of so many sessions, one is the owner's."""
        return self.all // self.own


def insert(target: str, counts: RecallRows, texts: Texts) -> list[str]:
    """Append the owner's messages, and insert all documents in an empty database. Return the owner's texts."""
    own = texts.several(counts.own)
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        for first in range(0, counts.own, SESSION_MESSAGES):
            session = f"session-{first // SESSION_MESSAGES}"
            client.create_session(session)
            client.batch_add_messages(
                session,
                [
                    {"role": "assistant" if number % 2 else "user", "content": text}
                    for number, text in enumerate(own[first : first + SESSION_MESSAGES])
                ],
            )
    database = open_database(target, Settings())
    try:
        database.write(ACCOUNT, lambda tx: _insert(tx, counts, own))
        if "://" in target:  # PostgreSQL does so automatically, but later
            database.write(
                ACCOUNT, lambda tx: tx.execute("ANALYZE documents, document_words, vectors, messages, sessions")
            )
    finally:
        database.close()
    return own


def _insert(tx: Tx, counts: RecallRows, own: Sequence[str]) -> None:
    tx.allow_long_statements()
    is_postgres = tx.dialect.name == "postgres"
    if is_postgres:
        tx.run_script("DROP INDEX document_words_by_word; SET LOCAL maintenance_work_mem = '256MB'")
    _insert_own(tx, counts, own)
    if counts.all > counts.own:
        _insert_others(tx, counts, own[:TEMPLATES])
    if is_postgres:
        tx.run_script(f"{_CREATE_INDEX}; SELECT setval(pg_get_serial_sequence('documents', 'n'), {counts.all})")
    for sql in _AFTERWARDS:
        tx.execute(sql)


def _insert_own(tx: Tx, counts: RecallRows, own: Sequence[str]) -> None:
    rows = tx.all("SELECT log_id, seq, role, created_at FROM messages ORDER BY log_id, seq")
    numbers = [_number(counts, position) for position in range(len(own))]
    account, owner = scopes.of_account(ACCOUNT), scopes.of_owner(ACCOUNT, OWNER)
    for first in range(0, len(own), _ROWS):
        params: list[str | int | None] = []
        entries = []
        for n, text, (log_id, seq, role, created_at) in zip(
            numbers[first : first + _ROWS], own[first:], rows[first:], strict=False
        ):
            params += (n, ACCOUNT, OWNER, "message", log_id, seq, 2, role, "", created_at, 1, 0, text.count(" ") + 1)
            params += ("[]", "[]", text)
            scope = " ".join([account, owner, scopes.of_kind("message"), scopes.of_log(log_id)])
            entries.append(TextEntry(n, scope, text))
        marks = f"({', '.join('?' * (_COLUMNS.count(',') + 1))})"
        tx.execute(f"INSERT INTO documents ({_COLUMNS}) VALUES {', '.join([marks] * len(entries))}", params)
        tx.dialect.insert_text(tx, entries)
    _insert_vectors(tx, numbers, own)


def _number(counts: RecallRows, position: int) -> int:
    """The number of the owner's document at a position: every `step`-th session is the owner's."""
    session, place = divmod(position, SESSION_MESSAGES)
    return session * counts.step * SESSION_MESSAGES + place + 1


def _insert_vectors(tx: Tx, numbers: Sequence[int], own: Sequence[str]) -> None:
    space = StaticEmbedder.space
    for first in range(0, len(own), _EMBEDDED):
        vectors = StaticEmbedder().embed(own[first : first + _EMBEDDED]).vectors
        encoded = [row.tobytes() for row in np.ascontiguousarray(vectors, dtype="<f2")]
        for start in range(0, len(encoded), _ROWS):
            params: list[str | int | bytes] = []
            for n, vector in zip(numbers[first + start :], encoded[start : start + _ROWS], strict=False):
                params += (ACCOUNT, OWNER, space, n, 1, vector)
            marks = ", ".join(["(?, ?, ?, ?, ?, ?)"] * (len(params) // 6))
            tx.execute(f"INSERT INTO vectors (account_id, owner_id, space, n, version, vector) VALUES {marks}", params)
    tx.execute("INSERT INTO vector_spaces (account_id, space) VALUES (?, ?)", (ACCOUNT, space))
    tx.execute(
        "INSERT INTO embedded (account_id, owner_id, space, version, n) VALUES (?, ?, ?, 1, ?)",
        (ACCOUNT, OWNER, space, max(numbers)),
    )


def _insert_others(tx: Tx, counts: RecallRows, templates: Sequence[str]) -> None:
    tx.execute("CREATE TEMPORARY TABLE templates (k INTEGER PRIMARY KEY, words TEXT)")
    for first in range(0, len(templates), _ROWS):
        some = templates[first : first + _ROWS]
        params = [value for k, text in enumerate(some, first) for value in (k, text)]
        tx.execute(f"INSERT INTO templates VALUES {', '.join(['(?, ?)'] * len(some))}", params)
    session = f"((i - 1) / {SESSION_MESSAGES})"
    log = f"({FIRST_OTHER_LOG} + {session})"
    owner = f"('other-' || ({session} % {OTHER_OWNERS}))"
    numbers = (
        f"WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {counts.all}),"
        f" others AS (SELECT i, t.words FROM numbers JOIN templates t ON t.k = i % {len(templates)}"
        f" WHERE {session} % {counts.step} <> 0)"
    )
    tx.execute(
        f"{numbers} INSERT INTO documents ({_COLUMNS}) SELECT i, '{ACCOUNT}', {owner}, 'message', {log},"
        f" (i - 1) % {SESSION_MESSAGES} + 1, 2, 'user', '', i, 1, 0, 40, '[]', '[]', words FROM others"
    )
    _insert_other_words(tx, numbers, log, session)
    tx.execute("DROP TABLE templates")


def _insert_other_words(tx: Tx, numbers: str, log: str, session: str) -> None:
    """Insert the text index of other owners, whose scopes are built as `scopes` does."""
    account, kind = scopes.of_account(ACCOUNT), scopes.of_kind("message")
    prefix = f"o{ACCOUNT.encode().hex()}x"
    tx.execute("CREATE TEMPORARY TABLE owners (k INTEGER PRIMARY KEY, scope TEXT)")
    for k in range(OTHER_OWNERS):
        tx.execute("INSERT INTO owners VALUES (?, ?)", (k, f"{prefix}{f'other-{k}'.encode().hex()}"))
    scope = f"'{account} ' || o.scope || ' {kind} l' || {log}"
    joined = f"others JOIN owners o ON o.k = {session} % {OTHER_OWNERS}"
    if tx.dialect.name == "postgres":
        words = f"{_LEXEMES.format(scope=scope)} || strip(to_tsvector('holdfast_text', words))"
        tx.execute(f"{numbers} INSERT INTO document_words (n, words) SELECT i, {words} FROM {joined}")
    else:
        tx.execute(f"{numbers} INSERT INTO document_text (rowid, scope, text) SELECT i, {scope}, words FROM {joined}")
    tx.execute("DROP TABLE owners")
