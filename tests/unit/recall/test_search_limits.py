"""What a search finds at the limits: of time, of an address, and of what others share."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import holdfast
from holdfast import Client


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with holdfast.connect(tmp_path / "data", user="ann") as client:
        yield client


@pytest.mark.parametrize("as_of", ["0001-01-01", "0001-01-08", "9999-12-31"])
@pytest.mark.parametrize("query", ["yesterday", "what happened tomorrow", "two weeks ago", "last Monday", "昨天"])
def test_a_time_at_the_ends_of_the_calendar_is_answered(client: Client, as_of: str, query: str) -> None:
    client.add_message("notes", "user", "nothing happened")
    assert client.search(query, as_of=as_of).query_plan.query == query


def test_messages_before_1970_are_found_and_limited(client: Client) -> None:
    client.batch_add_messages(
        "old", [{"role": "user", "content": "The zyxel landing", "created_at": "1969-07-20T00:00:00Z"}]
    )
    client.add_message("new", "user", "yak today")
    for _ in range(2):
        assert client.search("zyxel").messages[0].session_id == "old"
        assert "new" not in {hit.session_id for hit in client.search("yak", until="1969-12-31").messages}
        assert "new" not in {hit.session_id for hit in client.search("yak", until="1970-01-01T00:00:00Z").messages}
        client.wait_until_idle(30)


def test_yesterday_is_a_day_of_the_asker(client: Client) -> None:
    client.add_message("notes", "user", "hello")
    (time,) = client.search("yesterday", as_of="2026-11-18T00:30:00+05:00").query_plan.times
    assert time.since.isoformat() == "2026-11-16T19:00:00+00:00"


def test_a_damaged_row_of_the_index_does_not_stop_searches(client: Client, tmp_path: Path) -> None:
    client.batch_add_messages("notes", [{"role": "user", "content": f"Zebra note number {n}"} for n in range(5)])
    client.wait_until_idle(30)
    client.close()
    database = apsw.Connection(str(next((tmp_path / "data").glob("*.db"))))
    database.execute("UPDATE documents SET tags = '{bad', dates = '[[1]]' WHERE number = 2")
    database.close()
    with holdfast.connect(tmp_path / "data", user="ann") as again:
        assert len(again.search("zebra yesterday").messages) == 5


def test_a_question_that_was_asked_often_does_not_hide_its_answer(client: Client) -> None:
    client.add_message("keys", "user", "The garage key is under the blue pot.")
    client.batch_add_messages("often", [{"role": "user", "content": "Where is the garage key?"}] * 8)
    found = client.session("often").search("Where is the garage key?", limit=3).messages
    assert [hit.session_id for hit in found] == ["keys"]


def test_one_message_is_found_by_its_address_whatever_the_limit(client: Client) -> None:
    client.batch_add_messages("notes", [{"role": "user", "content": f"garage key note {n}"} for n in range(10)])
    for seq in (1, 5, 10):
        found = client.search("garage key", target_uri=f"viking://session/notes#{seq}", limit=1).messages
        assert [hit.seq for hit in found] == [seq]


def test_a_search_for_words_alone_is_not_decided_by_neighbours(client: Client) -> None:
    for number in range(8):
        turns = [{"role": "user", "content": f"we talked about topic {number} {turn}"} for turn in range(30)]
        client.batch_add_messages(f"s{number}", turns)
    client.add_message("s3", "user", "The locker number is ZX-7731.")
    found = client.search("ZX-7731", score_threshold=0.5).messages
    assert [(hit.session_id, hit.seq) for hit in found] == [("s3", 31)]


def test_a_query_that_nothing_has_to_do_with_finds_nothing(client: Client) -> None:
    client.add_message("notes", "user", "hello")
    assert client.search("🌈").messages == []


def test_what_others_share_is_found_by_its_meaning(client: Client, tmp_path: Path) -> None:
    client.batch_add_messages(
        "home",
        [
            {"role": "user", "content": "My automobile broke down on the motorway."},
            {"role": "user", "content": "The physician examined my kid."},
        ],
    )
    client.add_message("secret", "user", "The physician examined the president.")
    client.session("home").share("ben", ["read"])
    client.wait_until_idle(30)
    with holdfast.connect(tmp_path / "data", user="ben") as ben:
        found = ben.search("doctor child").messages
    assert (found[0].session_id, found[0].seq) == ("home", 2)
    assert all(hit.session_id == "home" for hit in found)
