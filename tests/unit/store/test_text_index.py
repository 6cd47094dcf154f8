"""The text index on SQLite: messages that are not indexed yet are found, too."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.store.database import Tx
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.store.index import sqlite_text
from holdfast.text.words import split_words

INDEX_BATCH = 64

WORDS = st.sampled_from(["fox", "foxes", "run", "running", "web_search", "web", "search", "狐狸", "狐", "é", "_", "x1"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)


def indexed_rows(tx: Tx) -> list[int]:
    return [row[0] for row in tx.all("SELECT id FROM message_text_docsize ORDER BY id")]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> holdfast.Client:
    return holdfast.connect(tmp_path_factory.mktemp("text"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, min_size=1, max_size=6), query=TEXTS.filter(lambda text: bool(split_words(text))))
def test_a_search_finds_the_same_before_and_after_messages_are_indexed(
    client: holdfast.Client, texts: list[str], query: str
) -> None:
    session = client.session()
    for text in texts:
        session.add_message("user", content=text)
    before = [m.seq for m in client.get_messages(session.session_id, q=query).messages]
    for _ in range(INDEX_BATCH):
        client.add_message("filler", "user", "nothing to see")
    after = [m.seq for m in client.get_messages(session.session_id, q=query).messages]
    assert before == after


def test_fewer_than_64_messages_are_not_indexed_and_all_are_found(tmp_path: Path) -> None:
    database = SqliteDatabase(str(tmp_path / "holdfast.db"))
    with holdfast.connect(tmp_path / "holdfast.db") as client:
        for number in range(1, 200):
            client.add_message("chat_001", "user", f"word{number}")
            assert database.read("default", indexed_rows) == list(range(1, number // INDEX_BATCH * INDEX_BATCH + 1))
        for number in (1, 63, 64, 65, 150, 199):
            assert [m.seq for m in client.get_messages("chat_001", q=f"word{number}").messages] == [number]
    database.close()


def test_a_deleted_message_leaves_the_index_and_its_rowid_can_be_reused(tmp_path: Path) -> None:
    database = SqliteDatabase(str(tmp_path / "holdfast.db"))
    with holdfast.connect(tmp_path / "holdfast.db") as client:
        for _ in range(3):
            client.batch_add_messages("old", [{"role": "user", "content": "secret"}] * 100)
            client.add_message("new", "user", "plain")
            assert database.read("default", indexed_rows) == list(range(1, 65))
            assert client.get_messages("old", q="secret").messages[-1].seq == 100
            assert client.get_messages("new", q="secret").messages == []
            client.delete_session("old")
            client.delete_session("new")
            assert database.read("default", indexed_rows) == []
    database.close()


def test_an_unreadable_message_prevents_neither_appends_nor_searches(tmp_path: Path) -> None:
    """Damage or a later version may leave such a row."""
    database = SqliteDatabase(str(tmp_path / "holdfast.db"))
    with holdfast.connect(tmp_path / "holdfast.db") as client:
        client.add_message("bad", "user", "x")
        database.write("default", lambda tx: tx.execute("UPDATE messages SET parts = ']' WHERE account_id = 'default'"))
        for number in range(1, 130):
            client.add_message("good", "user", f"word{number}")
            assert client.get_messages("good", q=f"word{number}").messages[0].seq == number
    database.close()


def test_a_search_does_not_read_index_entries_of_other_accounts(tmp_path: Path) -> None:
    """The account is part of the index query."""
    file = tmp_path / "holdfast.db"
    with holdfast.connect(file, account="crowd") as crowd, holdfast.connect(file, account="small") as small:
        crowd.batch_add_messages("s", [{"role": "user", "content": "fox"}] * 64)
        small.add_message("s", "user", "fox")
        small.batch_add_messages("t", [{"role": "user", "content": "filler"}] * 64)
        database = SqliteDatabase(str(file))
        condition, (query, *_) = database.read("small", lambda tx: sqlite_text.match(tx, 1, ["fox"]))
        sql = "SELECT rowid FROM message_text WHERE message_text MATCH ?"
        rows = database.read("small", lambda tx: tx.all(sql, (query,)))
        assert "MATCH" in condition
        assert rows == [(65,)]  # the 64 rows before it belong to the other account
        database.close()
