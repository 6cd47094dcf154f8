"""The one check after every fault: what was acknowledged is there, in order, once and whole, and life goes on."""

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
from holdfast.testing.faults.workload import Append, Ledger, attempt
from holdfast.text import tokens

PROBE = "probe"
"""The writer of the appends with which `verify` shows that the next append works."""


def client_on(database: Database, settings: Settings | None = None) -> Client:
    return Client(LocalTransport(Engine(database, settings), Principal("default", "default", "root")))


def verify(target: str, ledger: Ledger) -> None:
    """Open `target` as anyone would and compare it with the ledger, then append to each session once more."""
    with _opened(target) as (client, database):
        database.read("default", _tables_agree)
        database.write("default", _gather_statistics)
        found: set[str] = set()
        for session_id in ledger.sessions():
            found |= _check_session(client, ledger, session_id)
        lost = ledger.acknowledged.keys() - found
        assert not lost, f"acknowledged but not there: {sorted(lost)}"
        undead = ledger.refused() & found
        assert not undead, f"there although the error said that nothing was written: {sorted(undead)}"
        _check_keys(database, ledger, found)
        for session_id in ledger.sessions():
            _check_next_append(client, ledger, session_id)


@contextmanager
def _opened(target: str) -> Iterator[tuple[Client, Database]]:
    settings = Settings.load()
    database = open_database(target, settings)
    with client_on(database, settings) as client:
        yield client, database


def _check_session(client: Client, ledger: Ledger, session_id: str) -> set[str]:
    """The appends that the session holds, each found whole and where it was acknowledged."""
    messages = _messages(client, session_id)
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1)), f"{session_id} has gaps"
    ids = [message.id for message in messages]
    assert len(set(ids)) == len(ids), f"{session_id} has an id twice"
    _check_counters(client, session_id, messages)

    by_mark = {append.marks()[0]: append for append in ledger.tried.values() if append.session_id == session_id}
    found: dict[str, list[Message]] = {}
    rest = messages
    while rest:
        append = by_mark.get(_mark(rest[0]))
        assert append, f"message {rest[0].seq} of {session_id} was never tried, or not as the first of its batch"
        assert append.word not in found, f"{append.word} is there twice"
        size = len(append.marks())
        found[append.word], rest = rest[:size], rest[size:]
    for word, its_messages in found.items():
        _check_append(client, ledger, ledger.tried[word], its_messages)
    for writer in {append.writer for append in by_mark.values()}:
        seqs = [event.seq for event in ledger.in_one_go(session_id, writer)]
        assert seqs == sorted(seqs), f"the messages of {writer} in {session_id} are not in the order of their appends"
    return set(found)


def _check_append(client: Client, ledger: Ledger, append: Append, messages: list[Message]) -> None:
    marks = append.marks()
    assert [_mark(message) for message in messages] == marks, f"{append.word} is there in part"
    for place, (message, given) in enumerate(zip(messages, append.messages(), strict=True)):
        assert message.role == given["role"], f"{marks[place]} has another role"
        assert message.tokens == tokens.of_parts(message.parts), f"{marks[place]} was counted wrongly"
        output = append.output(place)
        if output is None:
            assert message.text == given["content"], f"{marks[place]} has another text"
        else:
            _check_output(client, append.session_id, message, output)
    ids = [message.id for message in messages]
    hits = [hit.id for hit in client.get_messages(append.session_id, q=append.word).messages]
    assert hits == ids, f"the text index does not find {append.word} exactly once"
    told = ledger.acknowledged.get(append.word)
    if told is not None:
        assert messages[-1].seq == told.seq, f"{append.word} was acknowledged at {told.seq}, is at {messages[-1].seq}"
        assert ids == told.message_ids, f"{append.word} has other ids"


def _check_output(client: Client, session_id: str, message: Message, output: str) -> None:
    (part,) = message.parts
    assert isinstance(part, ToolPart), f"message {message.seq} of {session_id} lost its tool call"
    assert part.tool_output_chars == len(output), f"message {message.seq} of {session_id} tells a wrong length"
    kept = client.read_tool_result(session_id, part.tool_result_id, limit=1_000_000).content
    assert kept == output, f"the tool output of message {message.seq} of {session_id} is not whole"


def _check_counters(client: Client, session_id: str, messages: list[Message]) -> None:
    if not messages:
        return
    info = client.get_session(session_id)
    assert info.total_message_count == info.message_count == len(messages), f"{session_id} counts its messages wrongly"
    assert info.pending_tokens == sum(message.tokens for message in messages), f"{session_id} counts its tokens wrongly"


def _check_keys(database: Database, ledger: Ledger, found: set[str]) -> None:
    """A key is remembered if and only if its append is there; a client of a server makes one where none is given."""
    rows = database.read("default", lambda tx: tx.all(KEYS))
    keys = {key for session_id, key in rows if session_id in ledger.sessions()}
    made = {key for key in keys if key.startswith(MADE)}
    given = {word for word in found if ledger.tried[word].keyed}
    assert keys - made == given, "the keys are not those of the appends"
    assert len(made) in {0, len(found) - len(given)}, "there are more or fewer keys than appends"


def _check_next_append(client: Client, ledger: Ledger, session_id: str) -> None:
    before = len(_messages(client, session_id))
    number = sum(append.writer == PROBE for append in ledger.tried.values())
    append = Append(session_id, PROBE, number, keyed=True)
    assert attempt(client, append, ledger.note), f"the next append to {session_id} did not work"
    assert ledger.acknowledged[append.word].seq == before + len(append.marks()), f"{session_id} skipped a number"


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


def _mark(message: Message) -> str:
    match message.parts[0]:
        case TextPart(text):
            return text.split(" ", 1)[0]
        case ToolPart(tool_id):
            return tool_id
        case part:
            raise AssertionError(f"message {message.seq} has a part that nobody wrote: {part}")


NO_ROWS = {
    "a message belongs to no session": """
        SELECT m.seq FROM messages m
        LEFT JOIN sessions s ON s.account_id = m.account_id AND s.log_id = m.log_id
        WHERE m.account_id = ? AND s.log_id IS NULL
    """,
    "a message does not know the tokens up to it": """
        SELECT m.seq FROM (SELECT seq, tokens_through, SUM(tokens) OVER (PARTITION BY log_id ORDER BY seq) AS total
        FROM messages WHERE account_id = ?) m WHERE m.tokens_through <> m.total
    """,
    "a blob is not whole, or counts the messages that show it wrongly": """
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
KEYS = """
    SELECT s.session_id, a.key FROM appends a
    JOIN sessions s ON s.account_id = a.account_id AND s.log_id = a.log_id
"""
MADE = "idem_"
TEXT_INDEX = {
    "sqlite": """
        SELECT m.n, d.id FROM messages m FULL JOIN message_text_docsize d ON d.id = m.n
        WHERE m.n IS NULL OR (d.id IS NULL AND m.n < (SELECT MAX(id) FROM message_text_docsize))
    """,
    "postgres": """
        SELECT m.seq, t.seq FROM messages m FULL JOIN message_text t
        ON t.account_id = m.account_id AND t.log_id = m.log_id AND t.seq = m.seq WHERE m.seq IS NULL OR t.seq IS NULL
    """,
}


def _gather_statistics(tx: Tx) -> None:
    """PostgreSQL does so by itself, some time later; until then it makes slow plans for the many searches here."""
    if tx.dialect.name == "postgres":
        tx.execute("ANALYZE messages, message_text")


def _tables_agree(tx: Tx) -> None:
    if tx.dialect.name == "sqlite":
        report = tx.all("PRAGMA integrity_check")
        assert report == [("ok",)], f"the file is damaged: {report}"
    for problem, sql in NO_ROWS.items():
        rows = tx.all(sql, (tx.account,))
        assert not rows, f"{problem}: {rows}"
    rows = tx.all(TEXT_INDEX[tx.dialect.name])
    assert not rows, f"the text index holds other messages than there are: {rows}"
