"""The text index on PostgreSQL: messages that are not indexed yet are found, too."""

from collections.abc import Iterator
from functools import partial

import pytest

import holdfast
from holdfast import Settings
from holdfast.store.access.search import readable_documents, text_hits
from holdfast.store.access.search.readable_documents import DocumentFilter
from holdfast.store.database import Tx
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.store.index import postgres_text
from holdfast.store.tables import documents
from holdfast.store.tables.documents import NewDocument
from holdfast.store.tables.lineage import WHOLE_LOG, LogRange
from holdfast.testing.postgres import PostgresServer

NO_WORKERS = Settings(worker_threads=0)
OWNERS = 20


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture
def database(url: str) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(url)
    yield database
    database.close()


def found(client: holdfast.Client, session: str, q: str) -> list[int]:
    return [message.seq for message in client.get_messages(session, q=q).messages]


def test_every_message_is_found_whether_it_is_indexed_or_not(url: str) -> None:
    def check(client: holdfast.Client) -> None:
        assert [found(client, "s", f"WORD{seq}") for seq in range(1, 41)] == [[seq] for seq in range(1, 41)]
        assert found(client, "s", "run 狐 web_search") == list(range(1, 41))

    with holdfast.connect(url, settings=NO_WORKERS) as client:
        texts = [f"running word{seq} 狐狸 web_search" for seq in range(1, 41)]
        client.batch_add_messages("s", [{"role": "user", "content": text} for text in texts])
        check(client)
    with holdfast.connect(url) as client:
        client.wait_until_idle()
        check(client)
        client.add_message("s", "user", "word99")
        assert found(client, "s", "word99") == [41]


def test_a_fork_finds_unindexed_messages_of_its_origin(url: str) -> None:
    with holdfast.connect(url, settings=NO_WORKERS) as client:
        client.add_message("s", "user", "fox one")
        client.add_message("s", "user", "fox two")
        client.add_message("s", "user", "fox three")
        client.fork_session("s", 2, new_session_id="t")
        client.add_message("t", "user", "fox four")
        assert (found(client, "s", "fox"), found(client, "t", "fox")) == ([1, 2, 3], [1, 2, 3])
        assert client.get_messages("t", q="fox").messages[-1].text == "fox four"


def test_a_damaged_message_does_not_prevent_appends_and_searches(url: str, database: PostgresDatabase) -> None:
    with holdfast.connect(url, settings=NO_WORKERS) as client:
        client.add_message("s", "user", "fox")
        database.write("default", lambda tx: tx.execute("UPDATE messages SET parts = ']' WHERE account_id = 'default'"))
        for seq in range(2, 30):
            client.add_message("s", "user", f"word{seq}")
            assert found(client, "s", f"word{seq}") == [seq]


def add_documents(tx: Tx, owner: int, count: int) -> None:
    documents.insert(
        tx,
        f"user{owner}",
        [
            NewDocument(
                kind="message",
                log_id=owner + 1,
                number=number,
                level=2,
                role="user",
                speaker="",
                created_at=number,
                flags=0,
                dates="[]",
                words=["word"],
                text=f"common word{number % 500} {'fox' if number % 100 == 7 else 'hen'}",
            )
            for number in range(1, count + 1)
        ],
    )


def fill(database: PostgresDatabase) -> None:
    """Add 20,000 documents."""
    for owner in range(OWNERS):
        database.write("acme", partial(add_documents, owner=owner, count=20_000 // OWNERS))


def explain(tx: Tx, sql: str, params: tuple[object, ...]) -> str:
    return "\n".join(line[0] for line in tx.all(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}", params))


@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("is_analysed", [True, False])
def test_a_search_of_20000_documents_uses_the_index_although_the_rows_are_protected(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch, *, is_analysed: bool, is_shared: bool
) -> None:
    database.migrate(0)
    fill(database)
    if is_analysed:
        database.write("*", lambda tx: tx.execute("ANALYZE documents, document_words"))
    plans: list[str] = []

    def search(tx: Tx) -> int:
        def all_of(self: Tx, statements: list[tuple[str, tuple[object, ...]]]) -> list[list[tuple[object, ...]]]:
            monkeypatch.undo()
            plans.extend(explain(self, sql, params) for sql, params in statements)
            return self.all_of(statements)

        monkeypatch.setattr(type(tx), "all_of", all_of)
        if is_shared:
            shared = [LogRange(4, 1, WHOLE_LOG), LogRange(7, 1, 100)]
            return len(readable_documents.shared_candidates(tx, shared, [["fox"]], DocumentFilter(), 100)[0])
        return len(text_hits.find_numbers(tx, "user3", [["fox"]], None, 1_000)[0].numbers)

    assert database.read("acme", search) == (11 if is_shared else 10)
    assert "Bitmap Index Scan on document_words_by_word" in plans[0], plans[0]
    assert "Seq Scan on documents" not in plans[0], plans[0]


def test_a_search_within_a_session_uses_the_index_and_compares_each_message_once(database: PostgresDatabase) -> None:
    database.migrate(0)
    fill(database)

    def plan(tx: Tx) -> str:
        condition, params = postgres_text.match(tx, 3, ["word7"])
        sql = f"SELECT m.seq FROM messages m WHERE m.account_id = ? AND m.log_id = ? AND {condition} ORDER BY m.seq"
        return explain(tx, sql, ("acme", 3, *params))

    lines = database.read("acme", plan)
    assert "Bitmap Index Scan on document_words_by_word" in lines, lines
    assert "Seq Scan on document_words" not in lines, lines
