"""The text index on PostgreSQL: messages that are not indexed yet are found, too."""

from collections.abc import Iterator

import pytest

import holdfast
from holdfast.store.database import Tx
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.store.index import postgres_text
from holdfast.store.index.postgres_text import MAX_UNINDEXED, MAX_UNINDEXED_BYTES
from holdfast.testing.postgres import PostgresServer


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture
def client(url: str) -> Iterator[holdfast.Client]:
    with holdfast.connect(url) as client:
        yield client


def indexed(url: str) -> list[int]:
    database = PostgresDatabase(url)
    sql = "SELECT seq FROM message_text WHERE account_id = 'default' ORDER BY log_id, seq"
    try:
        return [row[0] for row in database.read("default", lambda tx: tx.all(sql))]
    finally:
        database.close()


def found(client: holdfast.Client, session: str, q: str) -> list[int]:
    return [message.seq for message in client.get_messages(session, q=q).messages]


def test_every_message_is_found_whether_it_is_indexed_or_not(client: holdfast.Client, url: str) -> None:
    for seq in range(1, 3 * MAX_UNINDEXED):
        client.add_message("s", "user", f"running word{seq} 狐狸")
        assert found(client, "s", f"WORD{seq}") == [seq]
        assert found(client, "s", "run 狐") == list(range(1, seq + 1))
        assert len(indexed(url)) == seq - seq % (MAX_UNINDEXED + 1)


def test_a_batch_of_messages_is_indexed_with_those_before_it(client: holdfast.Client, url: str) -> None:
    client.add_message("s", "user", "word1")
    client.batch_add_messages("s", [{"role": "user", "content": f"word{seq}"} for seq in range(2, 42)])
    assert indexed(url) == list(range(1, 42))
    assert [found(client, "s", f"word{seq}") for seq in range(1, 42)] == [[seq] for seq in range(1, 42)]


def test_a_large_message_is_indexed_at_once(client: holdfast.Client, url: str) -> None:
    client.add_message("s", "user", "small")
    client.add_message("s", "user", "large " * MAX_UNINDEXED_BYTES)
    assert indexed(url) == [1, 2]


def test_a_fork_finds_unindexed_messages_of_its_origin(client: holdfast.Client) -> None:
    client.add_message("s", "user", "fox one")
    client.add_message("s", "user", "fox two")
    client.add_message("s", "user", "fox three")
    client.fork_session("s", 2, new_session_id="t")
    client.add_message("t", "user", "fox four")
    assert (found(client, "s", "fox"), found(client, "t", "fox")) == ([1, 2, 3], [1, 2, 3])
    assert client.get_messages("t", q="fox").messages[-1].text == "fox four"


def test_a_damaged_message_does_not_prevent_appends_and_searches(client: holdfast.Client, url: str) -> None:
    client.add_message("s", "user", "fox")
    database = PostgresDatabase(url)
    database.write("default", lambda tx: tx.execute("UPDATE messages SET parts = ']' WHERE account_id = 'default'"))
    database.close()
    for seq in range(2, 2 * MAX_UNINDEXED):
        client.add_message("s", "user", f"word{seq}")
        assert found(client, "s", f"word{seq}") == [seq]


def test_a_search_reads_each_index_row_once_before_the_table_is_analysed(client: holdfast.Client, url: str) -> None:
    for _ in range(4):
        client.batch_add_messages("s", [{"role": "user", "content": f"word{number}"} for number in range(100)])
    database = PostgresDatabase(url)

    def explain(tx: Tx) -> str:
        row = tx.one("SELECT log_id FROM sessions WHERE account_id = 'default'")
        assert row is not None
        condition, params = postgres_text.match(tx, row[0], ["word7"])
        sql = f"SELECT m.seq FROM messages m WHERE m.account_id = ? AND m.log_id = ? AND {condition} ORDER BY m.seq"
        lines = tx.all(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}", ("default", row[0], *params))
        return "\n".join(line[0] for line in lines)

    try:
        plan = database.read("default", explain)
    finally:
        database.close()
    scans = [line for line in plan.splitlines() if "message_text" in line and "Scan" in line and "loops=" in line]
    assert scans, plan
    assert all("loops=1)" in scan for scan in scans), plan
