"""`holdfast eval sessions`: what was used after a message is what a search for it should find."""

from collections.abc import Iterator

import pytest

import holdfast
from holdfast.evaluation.own_history import matching_address, normal_address, read_history, search_as_before
from holdfast.evaluation.running import ask_questions


@pytest.fixture
def client(target: str) -> Iterator[holdfast.Client]:
    with holdfast.connect(target, user="anna") as client:
        client.add_message(
            "trip", "user", "The ferry to Bergen leaves from pier seven.", created_at="2026-01-01T10:00:00Z"
        )
        client.add_message("trip", "assistant", "Noted.", created_at="2026-01-01T10:01:00Z")
        client.add_message("garden", "user", "The roses need water.", created_at="2026-01-02T10:00:00Z")
        yield client


def ignore(_done: int, _total: int, _label: str) -> None:
    pass


def use(client: holdfast.Client, session_id: str, uri: str, created_at: str) -> None:
    client.session_used(session_id, contexts=[uri], created_at=created_at)


def test_the_last_user_message_before_a_use_is_the_query(client: holdfast.Client) -> None:
    client.add_message("plan", "user", "Hello!", created_at="2026-02-01T09:00:00Z")
    client.add_message("plan", "user", "Which pier has the ferry?", created_at="2026-02-01T10:00:00Z")
    client.add_message("plan", "assistant", "Pier seven.", created_at="2026-02-01T10:01:00Z")
    use(client, "plan", "viking://session/trip", "2026-02-01T10:02:00Z")
    client.add_message("plan", "user", "Thank you!", created_at="2026-02-01T10:03:00Z")
    (question,) = read_history(client).conversations[0].questions
    assert question.text == "Which pier has the ferry?"
    assert question.turns == ("viking://user/anna/sessions/trip",)


def test_a_used_session_is_found_by_its_message(client: holdfast.Client) -> None:
    client.add_message("plan", "user", "Which pier has the ferry to Bergen?", created_at="2026-02-01T10:00:00Z")
    use(client, "plan", "viking://session/trip/", "2026-02-01T10:02:00Z")
    answers, _seconds = ask_questions(read_history(client), search_as_before(client), ignore)
    assert [answer.rank for answer in answers] == [1]


def test_the_query_does_not_find_itself(client: holdfast.Client) -> None:
    client.add_message("plan", "user", "Which pier has the ferry to Bergen?", created_at="2026-02-01T10:00:00Z")
    client.add_message("plan", "assistant", "The ferry to Bergen has pier seven.", created_at="2026-02-01T10:01:00Z")
    use(client, "plan", "viking://session/trip", "2026-02-01T10:02:00Z")
    answers, _seconds = ask_questions(read_history(client), search_as_before(client), ignore)
    assert answers[0].found
    assert not any("sessions/plan" in found for found in answers[0].found)


def test_a_use_without_a_message_before_it_is_counted_as_left_out(client: holdfast.Client) -> None:
    use(client, "empty", "viking://resources/a.md", "2026-02-01T10:00:00Z")
    dataset = read_history(client)
    assert (dataset.left_out, dataset.conversations[0].questions) == (1, [])


def test_uses_of_other_users_are_not_read(client: holdfast.Client, target: str) -> None:
    client.add_message("plan", "user", "Which pier?", created_at="2026-02-01T10:00:00Z")
    use(client, "plan", "viking://session/trip", "2026-02-01T10:02:00Z")
    with holdfast.connect(target, user="bob") as other:
        assert read_history(other).conversations[0].questions == []


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("viking://session/trip/", "viking://user/anna/sessions/trip"),
        ("viking://~/memories/auth", "viking://user/anna/memories/auth"),
        ("viking://user/anna/sessions/trip#12", "viking://user/anna/sessions/trip#12"),
        ("viking://resources/a.md", "viking://resources/a.md"),
        ("not an address", "not an address"),
    ],
)
def test_an_address_has_one_form(uri: str, address: str) -> None:
    assert normal_address(uri, "anna") == address


def test_a_hit_below_a_used_address_counts_as_that_address() -> None:
    used = ("viking://user/anna/sessions/trip",)
    assert matching_address("viking://user/anna/sessions/trip#12", used) == used[0]
    assert matching_address("viking://user/anna/sessions/trip2#12", used) == "viking://user/anna/sessions/trip2#12"
