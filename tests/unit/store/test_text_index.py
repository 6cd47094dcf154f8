"""The text index on SQLite: messages that are not indexed yet are found, too."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import Settings
from holdfast.store.database import Tx
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.store.index import scopes, sqlite_text
from holdfast.text.words import indexed_words

NO_WORKERS = Settings(worker_threads=0)
WORDS = st.sampled_from(["fox", "foxes", "run", "running", "web_search", "web", "search", "狐狸", "狐", "é", "_", "x1"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)


def indexed_rows(tx: Tx) -> list[int]:
    return [row[0] for row in tx.all("SELECT id FROM document_text_docsize ORDER BY id")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, min_size=1, max_size=6), query=TEXTS.filter(lambda text: bool(indexed_words(text))))
def test_a_search_finds_the_same_before_and_after_messages_are_indexed(
    folder: Path, texts: list[str], query: str
) -> None:
    with holdfast.connect(folder, settings=NO_WORKERS) as client:
        session = client.session()
        for text in texts:
            session.add_message("user", content=text)
        before = [m.seq for m in client.get_messages(session.session_id, q=query).messages]
    with holdfast.connect(folder) as client:
        client.wait_until_idle()
        assert [m.seq for m in client.get_messages(session.session_id, q=query).messages] == before


def test_a_deleted_message_leaves_the_index_and_its_number_is_not_given_again(tmp_path: Path) -> None:
    database = SqliteDatabase(str(tmp_path / "holdfast.db"))
    with holdfast.connect(tmp_path / "holdfast.db") as client:
        for round_number in range(3):
            client.batch_add_messages("old", [{"role": "user", "content": "secret"}] * 100)
            client.add_message("new", "user", "plain")
            client.wait_until_idle()
            first = 1 + 101 * round_number
            assert database.read("default", indexed_rows) == list(range(first, first + 101))
            assert client.get_messages("old", q="secret").messages[-1].seq == 100
            assert client.get_messages("new", q="secret").messages == []
            client.delete_session("old")
            client.delete_session("new")
            assert database.read("default", indexed_rows) == []
    database.close()


def test_an_unreadable_message_prevents_neither_appends_nor_searches_nor_indexing(tmp_path: Path) -> None:
    """Damage or a later version may leave such a row."""
    database = SqliteDatabase(str(tmp_path / "holdfast.db"))
    with holdfast.connect(tmp_path / "holdfast.db", settings=NO_WORKERS) as client:
        client.batch_add_messages("s", [{"role": "user", "content": "x"}] * 3)
    database.write("default", lambda tx: tx.execute("UPDATE messages SET parts = ']' WHERE seq = 2"))
    with holdfast.connect(tmp_path / "holdfast.db") as client:
        for number in range(4, 10):
            client.add_message("s", "user", f"word{number}")
            assert client.get_messages("s", q=f"word{number}").messages[0].seq == number
        client.wait_until_idle()
        assert [m.seq for m in client.get_messages("s", q="x").messages] == [1, 3]
    assert database.read("default", indexed_rows) == list(range(1, 10))
    database.close()


def test_a_search_does_not_read_index_entries_of_other_accounts_owners_and_logs(tmp_path: Path) -> None:
    """They are part of the query of the index."""
    file = tmp_path / "holdfast.db"
    with holdfast.connect(file, account="crowd") as crowd, holdfast.connect(file, account="small", user="ann") as small:
        crowd.batch_add_messages("s", [{"role": "user", "content": "fox"}] * 64)
        crowd.wait_until_idle()
        small.add_message("s", "user", "fox")
        small.add_message("t", "user", "fox")
        small.wait_until_idle()
        database = SqliteDatabase(str(file))

        def count(scope: str) -> int:
            (query,) = sqlite_text.query([[scope]], ["fox"])
            sql = "SELECT rowid FROM document_text WHERE document_text MATCH ?"
            return len(database.read("small", lambda tx: tx.all(sql, (query,))))

        log_ids = database.read("small", lambda tx: tx.all("SELECT log_id FROM sessions WHERE account_id = 'small'"))
        assert [count(scopes.of_log(log_id)) for (log_id,) in log_ids] == [1, 1]
        assert count(scopes.of_account("small")) == count(scopes.of_owner("small", "ann")) == 2
        assert count(scopes.of_owner("small", "default")) == 0
        assert count(scopes.of_account("crowd")) == count(scopes.of_kind("message")) - 2 == 64
        database.close()
