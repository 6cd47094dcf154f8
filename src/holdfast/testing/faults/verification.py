"""The check after every fault: acknowledged messages are stored once, in order and complete, and appends work."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.client.local import LocalTransport
from holdfast.client.sync.client import Client
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.errors import NotFoundError
from holdfast.model.identity import Principal
from holdfast.model.messages import Message
from holdfast.model.parts import TextPart, ToolPart
from holdfast.store.database import Database, Tx
from holdfast.testing.faults.workload import Append, AppendLog, attempt
from holdfast.text import tokens

PROBE = "probe"
"""The writer name of the appends with which `verify` checks that the next append works."""


def open_client(database: Database, settings: Settings | None = None) -> Client:
    return Client(LocalTransport(Engine(database, settings), Principal("default", "default", "root")))


def verify(target: str, append_log: AppendLog) -> None:
    """Open `target`, compare it with the log, then append to each session once more."""
    with _open(target) as (client, database):
        database.read("default", _check_tables)
        database.write("default", _gather_statistics)
        found: set[str] = set()
        for session_id in append_log.sessions():
            found |= _check_session(client, append_log, session_id)
        lost = append_log.acknowledged.keys() - found
        assert not lost, f"acknowledged but not stored: {sorted(lost)}"
        unexpected = append_log.not_written() & found
        assert not unexpected, f"stored although the error said that nothing was written: {sorted(unexpected)}"
        _check_keys(database, append_log, found)
        for session_id in append_log.sessions():
            _check_next_append(client, append_log, session_id)


@contextmanager
def _open(target: str) -> Iterator[tuple[Client, Database]]:
    settings = Settings.load()
    database = open_database(target, settings)
    with open_client(database, settings) as client:
        yield client, database


def _check_session(client: Client, append_log: AppendLog, session_id: str) -> set[str]:
    """Check the messages of a session and return the names of the appends that it contains."""
    messages = _messages(client, session_id)
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1)), f"{session_id} has gaps"
    ids = [message.id for message in messages]
    assert len(set(ids)) == len(ids), f"{session_id} has an id twice"
    _check_counters(client, session_id, messages)

    by_label = {
        append.labels()[0]: append for append in append_log.attempted.values() if append.session_id == session_id
    }
    found: dict[str, list[Message]] = {}
    rest = messages
    while rest:
        append = by_label.get(_label(rest[0]))
        assert append, f"message {rest[0].seq} of {session_id} was never attempted, or is not the first of its batch"
        assert append.name not in found, f"{append.name} is stored twice"
        size = len(append.labels())
        found[append.name], rest = rest[:size], rest[size:]
    for name, stored in found.items():
        _check_append(client, append_log, append_log.attempted[name], stored)
    for writer in {append.writer for append in by_label.values()}:
        seqs = [event.seq for event in append_log.first_try_results(session_id, writer)]
        assert seqs == sorted(seqs), f"the messages of {writer} in {session_id} are not in the order of their appends"
    return set(found)


def _check_append(client: Client, append_log: AppendLog, append: Append, messages: list[Message]) -> None:
    labels = append.labels()
    assert [_label(message) for message in messages] == labels, f"{append.name} is stored in part"
    for place, (message, sent) in enumerate(zip(messages, append.messages(), strict=True)):
        assert message.role == sent["role"], f"{labels[place]} has a different role"
        assert message.tokens == tokens.count_parts(message.parts), f"{labels[place]} has a wrong token count"
        output = append.output(place)
        if output is None:
            assert message.text == sent["content"], f"{labels[place]} has a different text"
        else:
            _check_output(client, append.session_id, message, output)
    ids = [message.id for message in messages]
    hits = [hit.id for hit in client.get_messages(append.session_id, q=append.name).messages]
    assert hits == ids, f"the text index does not find {append.name} exactly once"
    result = append_log.acknowledged.get(append.name)
    if result is not None:
        assert messages[-1].seq == result.seq, (
            f"{append.name} was acknowledged at {result.seq}, is at {messages[-1].seq}"
        )
        assert ids == result.message_ids, f"{append.name} has different ids"


def _check_output(client: Client, session_id: str, message: Message, output: str) -> None:
    (part,) = message.parts
    assert isinstance(part, ToolPart), f"message {message.seq} of {session_id} has no tool call"
    assert part.tool_output_chars == len(output), f"message {message.seq} of {session_id} has a wrong length"
    stored = client.read_tool_result(session_id, part.tool_result_id, limit=1_000_000).content
    assert stored == output, f"the tool output of message {message.seq} of {session_id} is not complete"


def _check_counters(client: Client, session_id: str, messages: list[Message]) -> None:
    if not messages:
        return
    info = client.get_session(session_id)
    assert info.total_message_count == info.message_count == len(messages), f"{session_id} has a wrong message count"
    assert info.pending_tokens == sum(message.tokens for message in messages), f"{session_id} has a wrong token count"


def _check_keys(database: Database, append_log: AppendLog, found: set[str]) -> None:
    """Check that the key of an append is stored if the append is, and only then.

    An HTTP client generates a key where none is given.
    """
    rows = database.read("default", lambda tx: tx.all(STORED_KEYS))
    keys = {key for session_id, key in rows if session_id in append_log.sessions()}
    generated = {key for key in keys if key.startswith(GENERATED_PREFIX)}
    chosen = {name for name in found if append_log.attempted[name].keyed}
    assert keys - generated == chosen, "the stored keys differ from the keys of the appends"
    assert len(generated) in {0, len(found) - len(chosen)}, "the number of generated keys is wrong"


def _check_next_append(client: Client, append_log: AppendLog, session_id: str) -> None:
    before = len(_messages(client, session_id))
    number = sum(append.writer == PROBE for append in append_log.attempted.values())
    append = Append(session_id, PROBE, number, keyed=True)
    assert attempt(client, append, append_log.record), f"the next append to {session_id} failed"
    assert append_log.acknowledged[append.name].seq == before + len(append.labels()), (
        f"{session_id} skipped a sequence number"
    )


def _messages(client: Client, session_id: str) -> list[Message]:
    found: list[Message] = []
    first: int | None = 1
    while first is not None:
        try:
            page = client.get_messages(session_id, first, limit=10_000)
        except NotFoundError:
            return []
        found += page.messages
        first = page.next_seq
    return found


def _label(message: Message) -> str:
    match message.parts[0]:
        case TextPart(text):
            return text.split(" ", 1)[0]
        case ToolPart(tool_id):
            return tool_id
        case part:
            raise AssertionError(f"message {message.seq} has an unexpected part: {part}")


INCONSISTENCIES = {
    "a message belongs to no session": """
        SELECT m.seq FROM messages m
        LEFT JOIN sessions s ON s.account_id = m.account_id AND s.log_id = m.log_id
        WHERE m.account_id = ? AND s.log_id IS NULL
    """,
    "the running token total of a message is wrong": """
        SELECT m.seq FROM (SELECT seq, tokens_through, SUM(tokens) OVER (PARTITION BY log_id ORDER BY seq) AS total
        FROM messages WHERE account_id = ?) m WHERE m.tokens_through <> m.total
    """,
    "a message that counts as indexed has no document": """
        SELECT m.log_id, m.seq FROM messages m
        JOIN sessions s ON s.account_id = m.account_id AND s.log_id = m.log_id AND s.indexed_seq >= m.seq
        LEFT JOIN documents d ON d.account_id = m.account_id AND d.log_id = m.log_id AND d.kind = 'message'
        AND d.number = m.seq WHERE m.account_id = ? AND d.n IS NULL
    """,
    "a document of a message has no message, and its log is not stale": """
        SELECT d.log_id, d.number FROM documents d
        LEFT JOIN messages m ON m.account_id = d.account_id AND m.log_id = d.log_id AND m.seq = d.number
        WHERE d.account_id = ? AND d.kind = 'message' AND m.seq IS NULL
    """,
    "a session with pending messages is not in the list of unindexed logs": """
        SELECT s.session_id FROM sessions s WHERE s.account_id = ? AND s.indexed_seq <
        (SELECT MAX(m.seq) FROM messages m WHERE m.account_id = s.account_id AND m.log_id = s.log_id)
        AND NOT EXISTS (SELECT 1 FROM unindexed u WHERE u.account_id = s.account_id AND u.log_id = s.log_id)
    """,
    "the documents of an owner are counted wrongly": """
        SELECT o.owner_id, o.documents, o.words FROM index_owners o WHERE o.account_id = ? AND (o.documents, o.words) <>
        (SELECT COUNT(*), COALESCE(SUM(d.word_count), 0) FROM documents d
        WHERE d.account_id = o.account_id AND d.owner_id = o.owner_id)
    """,
    "a blob is incomplete or has a wrong reference count": """
        SELECT b.hash FROM blobs b WHERE b.account_id = ? AND (b.chars <> LENGTH(b.content) OR b.refs <>
        (SELECT COUNT(*) FROM tool_results t WHERE t.account_id = b.account_id AND t.hash = b.hash))
    """,
    "a tool result has no message or no content": """
        SELECT t.seq FROM tool_results t
        LEFT JOIN messages m ON m.account_id = t.account_id AND m.log_id = t.log_id AND m.seq = t.seq
        LEFT JOIN blobs b ON b.account_id = t.account_id AND b.hash = t.hash
        WHERE t.account_id = ? AND (m.seq IS NULL OR b.hash IS NULL)
    """,
}
STORED_KEYS = """
    SELECT s.session_id, a.key FROM appends a
    JOIN sessions s ON s.account_id = a.account_id AND s.log_id = a.log_id
"""
GENERATED_PREFIX = "idem_"
TEXT_INDEX_DIFFERENCES = {
    "sqlite": """
        SELECT d.n, t.id FROM documents d FULL JOIN document_text_docsize t ON t.id = d.n
        WHERE d.n IS NULL OR t.id IS NULL
    """,
    "postgres": """
        SELECT d.n, t.n FROM documents d FULL JOIN document_words t ON t.n = d.n
        WHERE d.n IS NULL OR t.n IS NULL
    """,
}


def _gather_statistics(tx: Tx) -> None:
    """Run ANALYZE. PostgreSQL does so automatically, but later; until then its plans for the searches here are slow."""
    if tx.dialect.name == "postgres":
        tx.execute("ANALYZE messages, documents, document_words")


def _check_tables(tx: Tx) -> None:
    if tx.dialect.name == "sqlite":
        report = tx.all("PRAGMA integrity_check")
        assert report == [("ok",)], f"the file is damaged: {report}"
    for problem, sql in INCONSISTENCIES.items():
        rows = tx.all(sql, (tx.account,))
        assert not rows, f"{problem}: {rows}"
    rows = tx.all(TEXT_INDEX_DIFFERENCES[tx.dialect.name])
    assert not rows, f"the text index does not match the documents: {rows}"
