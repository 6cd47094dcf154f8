"""The list of the latest texts answers as the index does."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.search.text import query_words
from holdfast.store import textindex
from holdfast.store.database import Tx
from holdfast.store.sqlite import SqliteDatabase

WORDS = st.sampled_from(["fox", "foxes", "run", "running", "web_search", "web", "search", "狐狸", "狐", "é", "_", "x1"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)


def counts(tx: Tx) -> tuple[int, int]:
    rows = tx.all("SELECT COUNT(*) FROM recent_text UNION ALL SELECT COUNT(*) FROM message_text_docsize")
    return rows[0][0], rows[1][0]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> holdfast.Client:
    return holdfast.connect(tmp_path_factory.mktemp("text"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, min_size=1, max_size=6), query=TEXTS.filter(lambda text: bool(query_words(text))))
def test_a_search_finds_the_same_before_and_after_texts_move_into_the_index(
    client: holdfast.Client, texts: list[str], query: str
) -> None:
    session = client.session()
    for text in texts:
        session.add_message("user", content=text)
    before = [m.seq for m in client.get_messages(session.session_id, q=query).messages]
    for _ in range(textindex.MOST_RECENT + 1):
        client.add_message("filler", "user", "nothing to see")
    after = [m.seq for m in client.get_messages(session.session_id, q=query).messages]
    assert before == after


def test_the_list_stays_short_and_nothing_is_missing(tmp_path: Path) -> None:
    database = SqliteDatabase(str(tmp_path / "holdfast.db"))
    with holdfast.connect(tmp_path / "holdfast.db") as client:
        for number in range(1, 200):
            client.add_message("chat_001", "user", f"word{number}")
            recent, indexed = database.read("default", counts)
            assert recent + indexed == number
            assert recent <= textindex.MOST_RECENT
        for number in (1, 64, 65, 66, 150, 199):
            assert [m.seq for m in client.get_messages("chat_001", q=f"word{number}").messages] == [number]
    database.close()


def test_a_deleted_message_leaves_both(tmp_path: Path) -> None:
    database = SqliteDatabase(str(tmp_path / "holdfast.db"))
    with holdfast.connect(tmp_path / "holdfast.db") as client:
        client.batch_add_messages("old", [{"role": "user", "content": "secret"}] * 100)
        client.add_message("new", "user", "secret")
        assert database.read("default", counts) == (1, 100)
        client.delete_session("old")
        client.delete_session("new")
        assert database.read("default", counts) == (0, 0)
    database.close()
