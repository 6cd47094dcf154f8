"""Damaged rows of both databases are named, and the others are served."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import holdfast
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.engine.gate.ids import system_clock
from holdfast.errors import DataDamagedError, UnavailableError
from holdfast.store import backfills, damage, repair
from holdfast.store.checked import salvage
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx

SETTINGS = Settings(worker_threads=1, tool_output_threshold=100)
MESSAGES = 12


@pytest.fixture
def client(target: str) -> Iterator[holdfast.Client]:
    with holdfast.connect(target, settings=SETTINGS) as connected:
        yield connected


@pytest.fixture
def database(target: str, client: holdfast.Client) -> Iterator[Database]:
    opened = open_database(target, SETTINGS)
    yield opened
    opened.close()


@pytest.fixture
def run(database: Database) -> Callable[..., None]:
    """Change rows without their checksums, as a defective disk does."""

    def run_statement(sql: str, *params: Any) -> None:
        def write(tx: Tx) -> None:
            if tx.dialect.name == "postgres" and sql.startswith("UPDATE"):  # a disk does not check constraints
                tx.execute("ALTER TABLE messages DROP CONSTRAINT IF EXISTS messages_need_a_checksum")
            tx.execute(sql, params)

        database.write(EVERY_ACCOUNT, write)

    return run_statement


def fill(client: holdfast.Client, session: str = "s") -> None:
    client.batch_add_messages(
        session, [{"role": "user", "content": f"word{number}"} for number in range(1, MESSAGES + 1)]
    )


def commit(client: holdfast.Client, session: str = "s", keep: int = 0) -> None:
    assert client.wait_for_task(str(client.commit_session(session, keep).task_id)).status == "completed"


def add_checksums(tx: Tx, after: str) -> backfills.Backfilled:
    return backfills.BACKFILLS["0006_checksums"](tx, after or None, 5)


def found_damage(database: Database) -> list[str]:
    return [each.describe() for each in damage.find(database, lambda *_: None)]


CHANGES = {
    "text": "parts = REPLACE(parts, 'word5', 'word6')",
    "invalid JSON": "parts = '[{'",
    "role": "role = 'admin'",
    "time": "created_at = created_at + 1",
    "absurd time": "created_at = 9000000000000000000",
    "tokens": "tokens = tokens + 1",
    "extra": 'extra = \'{"peer_id":"x"}\'',
    "checksum": "checksum = checksum + 1",
    "no checksum": "checksum = NULL",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_damaged_message_is_named_and_the_others_are_served(
    client: holdfast.Client, run: Callable[..., None], database: Database, change: str
) -> None:
    fill(client)
    before = client.get_messages("s").messages
    run(f"UPDATE messages SET {change} WHERE seq = 5")
    for messages in (
        client.get_messages("s").messages,
        client.get_session_context("s").messages,
        [event.message for event in client.read_events("s").events if event.message],
    ):
        damaged = messages.pop(4)
        assert messages == [*before[:4], *before[5:]]
        assert (damaged.damaged, damaged.seq, damaged.id) == (True, 5, before[4].id)
        assert "Message 5 of this session is damaged" in damaged.text
    assert '"seq":5,' in client.read("viking://session/s/messages.jsonl").splitlines()[4]
    receipt = client.get_session_context("s").receipt
    assert [(line.what, line.first_seq) for line in receipt.left_out] == [("damaged", 5)]
    assert found_damage(database)[0].startswith("account default: message 5 of session s is damaged")


def test_a_missing_message_is_named(client: holdfast.Client, run: Callable[..., None], database: Database) -> None:
    fill(client)
    run("DELETE FROM messages WHERE seq IN (1, 5, 6)")
    page = client.get_messages("s", limit=5)
    assert [(message.seq, message.damaged) for message in page.messages] == [
        (1, True),
        (2, False),
        (3, False),
        (4, False),
        (5, True),
    ]
    assert page.next_seq == 6
    assert "Message 5 of this session is missing" in page.messages[4].text
    assert len(client.read("viking://session/s/messages.jsonl").splitlines()) == MESSAGES
    assert [text for text in found_damage(database) if "missing" in text][:2] == [
        "account default: message 1 of session s is missing",
        "account default: message 5 of session s and all up to 6 are missing",
    ]


def test_a_damaged_sequence_number_does_not_make_endless_placeholders(
    client: holdfast.Client, run: Callable[..., None]
) -> None:
    fill(client)
    run("UPDATE messages SET seq = ? WHERE seq = 12", 2**40)
    messages = client.get_messages("s", limit=1_000).messages
    assert [message.seq for message in messages[:11]] == list(range(1, 12))
    assert all(message.damaged for message in messages[11:])
    assert "are missing" in client.get_session_context("s").messages[11].text
    assert len(client.read("viking://session/s/messages.jsonl").splitlines()) < 1_100


def test_a_retried_append_a_commit_a_search_and_a_fork_work_over_damaged_messages(
    client: holdfast.Client, run: Callable[..., None]
) -> None:
    fill(client)
    client.add_message("s", "user", "hello", id="mine")
    run("UPDATE messages SET parts = ']' WHERE seq IN (3, 13)")
    assert client.add_message("s", "user", "hello", id="mine").seq == 13
    assert [message.seq for message in client.get_messages("s", q="word4").messages] == [4]
    commit(client)
    assert "word1" in client.get_session_archive("s", "archive_001").overview
    client.fork_session("s", new_session_id="t")
    assert [message.seq for message in client.get_messages("t").messages if message.damaged] == [3, 13]
    assert client.add_message("t", "user", "more").seq == 14


def test_a_damaged_archive_is_named_and_its_messages_are_shown(
    client: holdfast.Client, run: Callable[..., None], database: Database
) -> None:
    fill(client)
    commit(client, keep=6)
    commit(client)
    assert client.get_session_context("s").messages == []
    first_overview = client.get_session_archive("s", "archive_001").overview
    run("UPDATE archives SET overview = 'I never said that', rolling = 'nor that' WHERE number = 2")
    with pytest.raises(DataDamagedError, match="archive_002 is damaged"):
        client.get_session_archive("s", "archive_002")
    context = client.get_session_context("s")
    assert context.latest_archive_overview == first_overview
    assert [message.seq for message in context.messages] == list(range(7, 13))
    assert "is damaged, so they are shown themselves" in context.receipt.included[0].why
    assert [archive.damaged for archive in client.list_archives("s")] == [False, True]
    assert found_damage(database) == [
        "account default: archive_002 of session s is damaged: its checksum does not match"
    ]
    assert "archive_002" in str(client.tree("viking://session/s", level_limit=4))


def test_a_commit_after_a_damaged_archive_summarises_the_rest(
    client: holdfast.Client, run: Callable[..., None]
) -> None:
    fill(client)
    commit(client)
    run("UPDATE archives SET summary = '{', abstract = 'x' WHERE number = 1")
    client.add_message("s", "user", "The launch is on Friday.")
    commit(client)
    assert "Friday" in client.get_session_archive("s", "archive_002").overview


def test_a_damaged_tool_output_is_named(client: holdfast.Client, run: Callable[..., None], database: Database) -> None:
    part = {"type": "tool", "tool_id": "c", "tool_name": "sh", "tool_output": "ok " * 100, "tool_status": "completed"}
    client.batch_add_messages("s", [{"role": "assistant", "parts": [part]}])
    (output,) = client.list_tool_results("s").tool_results
    assert client.read_tool_result("s", output.tool_result_id, offset=3, limit=2).content == "ok"
    run("UPDATE blobs SET content = REPLACE(content, 'ok', 'no')")
    with pytest.raises(DataDamagedError, match=output.tool_result_id):
        client.read_tool_result("s", output.tool_result_id)
    assert "damaged" in client.get_session_context("s").receipt.left_out[0].why
    assert output.tool_result_id in found_damage(database)[0]


def test_a_damaged_session_raises_one_clear_error_and_is_repaired(
    client: holdfast.Client, run: Callable[..., None], database: Database
) -> None:
    fill(client)
    run("UPDATE sessions SET metadata = '{', config = ']'")
    with pytest.raises(DataDamagedError, match="holdfast doctor --deep"):
        client.get_session("s")
    assert len(client.get_messages("s").messages) == MESSAGES
    assert found_damage(database) == [
        "account default: session s is damaged: its metadata or its settings cannot be decoded"
    ]
    assert all(each.is_done for each in repair.repair(database, lambda *_: None, system_clock))
    assert client.get_session("s").metadata == {}


def test_repaired_rows_are_readable_and_the_damaged_ones_are_kept(
    client: holdfast.Client, run: Callable[..., None], database: Database
) -> None:
    fill(client)
    commit(client, keep=6)
    run("UPDATE messages SET parts = '[{' WHERE seq = 5")
    run("DELETE FROM messages WHERE seq IN (8, 9)")
    run("UPDATE archives SET overview = 'changed'")
    repaired = list(repair.repair(database, lambda *_: None, system_clock))
    assert all(each.is_done for each in repaired), repaired
    assert found_damage(database) == []
    messages = client.get_messages("s").messages
    assert [message.seq for message in messages if message.damaged] == [5, 8, 9]
    assert "was damaged" in messages[4].text
    kept = database.read(EVERY_ACCOUNT, lambda tx: tx.all("SELECT table_name, number, content FROM quarantine"))
    assert sorted((table, number) for table, number, _ in kept) == [("archives", 1), ("messages", 5)]
    assert '"[{"' in next(content for table, _, content in kept if table == "messages")
    (started,) = client.resummarise("s")
    assert client.wait_for_task(str(started.task_id)).status == "completed"
    assert "word1" in client.get_session_archive("s", "archive_001").overview


def test_old_rows_get_checksums_in_the_background_and_are_readable_before(
    client: holdfast.Client, run: Callable[..., None], database: Database
) -> None:
    fill(client)
    commit(client, keep=6)
    before = client.get_messages("s").messages
    run("UPDATE messages SET checksum = NULL")
    run("UPDATE archives SET checksum = NULL, summary_checksum = NULL")
    run("INSERT INTO unchecked_tables VALUES ('messages'), ('archives')")
    run("UPDATE messages SET parts = '[{' WHERE seq = 3")
    messages = client.get_messages("s").messages
    assert [message.seq for message in messages if message.damaged] == [3]
    assert [message for message in messages if not message.damaged] == [*before[:2], *before[3:]]
    after: str | None = ""
    slices = 0
    while after is not None:
        after = database.write(EVERY_ACCOUNT, partial(add_checksums, after=after)).after
        slices += 1
    assert slices > 3
    assert found_damage(database) == ["account default: message 3 of session s is damaged: its checksum does not match"]
    run("UPDATE messages SET checksum = NULL WHERE seq = 4")
    assert [message.seq for message in client.get_messages("s").messages if message.damaged] == [3, 4]


def test_long_gaps_have_one_placeholder(client: holdfast.Client, database: Database) -> None:
    fill(client)
    log_id = database.read(EVERY_ACCOUNT, lambda tx: tx.all("SELECT log_id FROM sessions"))[0][0]
    found = database.read("default", lambda tx: salvage.read_range(tx, log_id, 1, 5_000, 2**31))
    assert (len(found), found[-1].seq) == (MESSAGES + 1, 5_000)


def test_a_version_that_writes_no_checksums_cannot_add_messages(
    client: holdfast.Client, run: Callable[..., None], database: Database
) -> None:
    """Such a message would count as damaged once all others have a checksum."""
    fill(client)
    columns = "account_id, log_id, seq, id, id_given, role, parts, tokens, tokens_through, author, created_at, added_at"
    values = columns.replace("seq", "seq + 100").replace(" id,", " 'new',")
    with pytest.raises((DataDamagedError, UnavailableError)):
        run(f"INSERT INTO messages ({columns}) SELECT {values} FROM messages WHERE seq = 1")
    assert found_damage(database) == []
