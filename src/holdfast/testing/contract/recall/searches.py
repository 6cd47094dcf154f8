"""The contract of searches: what they find, where they look, and what they return of it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.errors import InvalidArgumentError, InvalidUriError, PermissionDeniedError

TRIP = [
    ("user", "We fly to Lisbon on Friday with the early plane."),
    ("assistant", "Shall I book a hotel near the river?"),
    ("user", "Yes, the Casa Azul, but without breakfast."),
    ("assistant", "Done: the Casa Azul is booked under ORD-4711."),
    ("user", "Thank you, please remind me of the passport."),
]
GARDEN = [
    ("user", "The tomatoes on the balcony need more water."),
    ("assistant", "I will remind you every evening at seven."),
]


def add(client: Any, session_id: str, turns: list[tuple[str, str]], **fields: Any) -> None:
    client.batch_add_messages(session_id, [{"role": role, "content": text, **fields} for role, text in turns])


def found(result: Any) -> list[tuple[str, int]]:
    return [(hit.session_id, hit.seq) for hit in result.messages]


class SearchContract:
    @pytest.fixture
    def filled(self, client: Any) -> Any:
        add(client, "trip", TRIP)
        add(client, "garden", GARDEN)
        return client

    def test_a_message_is_found_by_its_words_with_its_address_and_its_reasons(self, filled: Any) -> None:
        result = filled.search("What is booked under ORD-4711?")
        best = result.messages[0]
        assert (best.session_id, best.owner, best.seq) == ("trip", "alice", 4)
        assert best.uri == "viking://user/alice/sessions/trip#4"
        assert best.text == best.message.text == TRIP[3][1]
        assert (best.context_type, best.level, best.is_shortened) == ("message", 2, False)
        assert 0 < best.score <= 1
        assert sum(reason.share for reason in best.reasons) == pytest.approx(best.score, abs=1e-3)
        scores = [hit.score for hit in result.messages]
        assert scores == sorted(scores, reverse=True)
        assert len({hit.uri for hit in result.messages}) == len(result.messages) == result.total

    def test_a_message_is_found_by_the_next_call_after_its_append(self, client: Any) -> None:
        for number in range(3):
            client.add_message("notes", "user", f"The code of box {number} is {7_000 + number}.")
            assert found(client.search(f"code of box {number} {7_000 + number}", limit=1)) == [("notes", number + 1)]

    def test_an_identifier_is_found_whole(self, filled: Any) -> None:
        assert found(filled.search("ORD-4711", limit=1)) == [("trip", 4)]

    @pytest.mark.parametrize(("around", "expected"), [(0, []), (1, [3, 5]), (5, [1, 2, 3, 5])])
    def test_a_hit_has_the_messages_around_it(self, filled: Any, around: int, expected: list[int]) -> None:
        (hit,) = filled.search("ORD-4711", limit=1, around=around).messages
        assert [message.seq for message in hit.around] == expected
        assert all(message.text == TRIP[message.seq - 1][1] for message in hit.around)

    def test_the_messages_around_the_first_one_of_a_fork_are_its_parents(self, filled: Any) -> None:
        fork = filled.session("trip").fork(2)
        fork.add_message("user", "No, rather the pension Zebra.")
        (hit,) = filled.search("pension Zebra", limit=1).messages
        assert (hit.session_id, hit.seq) == (fork.session_id, 3)
        assert [message.text for message in hit.around] == [TRIP[1][1]]

    def test_a_fork_is_searched_with_the_messages_that_it_shares(self, filled: Any) -> None:
        fork = filled.session("trip").fork(4, new_session_id="fork")
        fork.add_message("user", "No, rather the pension Zebra.")
        in_fork = filled.search("Casa Azul ORD-4711", target_uri="viking://session/fork").messages
        assert {hit.session_id for hit in in_fork} == {"fork"}
        assert {hit.seq for hit in in_fork} >= {4, 5}
        everywhere = filled.search("Casa Azul ORD-4711").messages
        assert {(hit.session_id, hit.seq) for hit in everywhere if "ORD-4711" in hit.text} == {("trip", 4)}
        filled.delete_session("trip")
        filled.wait_until_idle(60)
        after = filled.search("Casa Azul ORD-4711").messages
        assert {(hit.session_id, hit.seq) for hit in after if "ORD-4711" in hit.text} == {("fork", 4)}

    def test_find_returns_no_messages(self, filled: Any) -> None:
        result = filled.find("Casa Azul")
        assert (result.memories, result.resources, result.skills, result.total) == ([], [], [], 0)
        assert "messages" not in result.to_dict()
        with pytest.raises(InvalidArgumentError, match="context_type: is not one of memory, resource, skill"):
            filled.find("Casa Azul", context_type="message")

    def test_a_kind_can_be_asked_for_alone(self, filled: Any) -> None:
        filled.wait_for_task(filled.commit_session("trip").task_id)
        filled.wait_until_idle(60)  # until the overview is indexed
        assert filled.search("Casa Azul", context_type="message").overviews == []
        only_overviews = filled.search("Casa Azul", context_type=["overview"])
        assert only_overviews.messages == []
        assert [hit.uri for hit in only_overviews.overviews] == [
            "viking://user/alice/sessions/trip/history/archive_001"
        ]
        assert found(filled.search("Casa Azul", level=[0, 1])) == []
        assert filled.search("Casa Azul", level=2).overviews == []

    def test_an_overview_is_found_with_its_abstract_and_with_its_text_if_asked_for(self, filled: Any) -> None:
        archive = filled.commit_session("trip")
        filled.wait_for_task(archive.task_id)
        filled.wait_until_idle(60)  # until the overview is indexed
        (hit,) = filled.search("Casa Azul", context_type="overview").overviews
        assert (hit.uri, hit.level, hit.abstract, hit.content) == (
            archive.archive_uri,
            1,
            filled.abstract(archive.archive_uri),
            None,
        )
        assert "content" not in hit.to_dict()
        (read,) = filled.search("Casa Azul", context_type="overview", read_content=True).overviews
        assert read.content == filled.overview(archive.archive_uri)

    @pytest.mark.parametrize(
        ("target", "sessions"),
        [
            ("", {"trip", "garden"}),
            ("viking://", {"trip", "garden"}),
            ([], {"trip", "garden"}),
            ("viking://~", {"trip", "garden"}),
            ("viking://user/alice/sessions/", {"trip", "garden"}),
            ("viking://session/trip", {"trip"}),
            ("viking://~/sessions/garden/", {"garden"}),
            (["viking://session/garden", "viking://session/trip"], {"trip", "garden"}),
            ("viking://session/trip/history", set()),
            ("viking://session/missing", set()),
            ("viking://user/bob", set()),
            ("viking://resources/manual", set()),
            ("viking://user/alice/memories", set()),
        ],
    )
    def test_a_search_looks_only_at_and_below_its_target(self, filled: Any, target: Any, sessions: set[str]) -> None:
        assert {hit.session_id for hit in filled.search("remind me", target_uri=target).messages} == sessions

    @pytest.mark.parametrize("target", ["https://example.org", "trip", "viking://temp/x", "viking://user//x"])
    def test_an_invalid_target_is_an_error(self, client: Any, target: str) -> None:
        with pytest.raises(PermissionDeniedError if ".." in target else InvalidUriError):
            client.search("hello", target_uri=target)

    def test_a_limit_applies_to_each_kind_and_a_threshold_to_each_hit(self, filled: Any) -> None:
        every = filled.search("remind me of the passport in the evening")
        assert len(every.messages) > 1
        assert found(filled.search("remind me of the passport in the evening", limit=1)) == found(every)[:1]
        # Between two scores: each changes a little with time, and when messages are indexed.
        threshold = (every.messages[0].score + every.messages[-1].score) / 2
        above = filled.search("remind me of the passport in the evening", score_threshold=threshold).messages
        assert above
        assert all(hit.score >= threshold for hit in above)
        assert len(above) < len(every.messages)

    def test_a_search_can_be_limited_to_a_time(self, client: Any) -> None:
        for day in (1, 10, 20):
            client.add_message("log", "user", f"Report of day {day}", created_at=datetime(2026, 3, day, 9, tzinfo=UTC))

        def days(**limits: Any) -> list[int]:
            return sorted(hit.seq for hit in client.search("report", **limits).messages)

        assert days() == [1, 2, 3]
        assert days(since="2026-03-10") == [2, 3]
        assert days(until="2026-03-10") == [1, 2]
        assert days(since=datetime(2026, 3, 10, 9, 1, tzinfo=UTC)) == [3]
        assert days(until="2026-03-10T09:00:00Z") == [1]
        assert days(since="2w", as_of="2026-03-20T12:00:00Z") == [2, 3]
        assert days(since="3h", as_of=datetime(2026, 3, 20, 12, tzinfo=UTC)) == [3]
        assert days(since="2026-03-11", until="2026-03-19") == []

    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ({"query": ""}, "query"),
            ({"query": " \n"}, "query: is empty; say what to search for"),
            ({"limit": 0}, "limit"),
            ({"limit": 1_001}, "limit"),
            ({"since": "soon"}, "since: 'soon' is not a time; use an age such as 7d"),
            ({"until": "2026-02-30"}, "until"),
            ({"as_of": "7"}, "as_of"),
            ({"score_threshold": 1.5}, "score_threshold"),
            ({"context_type": "song"}, "context_type: is not one of memory, message, overview, resource, skill"),
            ({"level": [3]}, r"level\[0\]: is not one of 0, 1, 2"),
            ({"around": 6}, "around"),
            ({"mode": "poem"}, "mode: is not one of context, list"),
            ({"session_id": "a/b"}, "session_id"),
            ({"query": "a\0b"}, "query: has a NUL character"),
            ({"tags": ["a\0"]}, r"tags\[0\]: has a NUL character"),
        ],
    )
    def test_invalid_input_is_an_error_that_names_the_field(
        self, client: Any, fields: dict[str, Any], problem: str
    ) -> None:
        with pytest.raises(InvalidArgumentError, match=problem):
            client.search(**{"query": "hello", **fields})

    def test_excluded_addresses_are_not_returned(self, filled: Any) -> None:
        (best,) = filled.search("remind me of the passport", limit=1).messages
        short = best.uri.replace("user/alice", "~")
        for excluded in ([short, "no address"], best.uri, (short,)):
            (next_best,) = filled.search("remind me of the passport", limit=1, exclude_uris=excluded).messages
            assert next_best.uri != best.uri
        (unchanged,) = filled.search("remind me of the passport", limit=1, exclude_uris="").messages
        assert unchanged.uri == best.uri

    def test_a_query_of_any_script_is_answered(self, client: Any) -> None:
        texts = [
            "狐狸在花园里",
            "лиса в саду",
            "الثعلب في الحديقة",
            "여우가 정원에",
            "🦊 in the garden",
            "キツネは庭に",
        ]
        add(client, "foxes", [("user", text) for text in texts])
        for number, text in enumerate(texts, 1):
            assert ("foxes", number) in found(client.search(text)), text
        for query in (
            '""" OR AND NOT (*:^',
            "((((",
            "'; DROP TABLE messages; --",
            "%_%",
            "🦊" * 50,
            "a" * 100_000,
            "-",
        ):
            assert client.search(query).total >= 0


class SharedSearchContract:
    def test_a_shared_session_is_found_by_its_readers_alone(self, client: Any, connect_as: Callable[..., Any]) -> None:
        bob = connect_as("acme", "bob", "user")
        add(client, "trip", TRIP)
        add(client, "garden", GARDEN)
        assert bob.search("remind me").total == 0
        client.share_session("trip", "bob")
        hits = bob.search("remind me").messages
        assert {(hit.owner, hit.session_id) for hit in hits} == {("alice", "trip")}
        assert found(bob.search("ORD-4711", target_uri="viking://user/alice/sessions/trip", limit=1)) == [("trip", 4)]
        client.share_session("trip", "bob", ["write"])
        assert bob.search("remind me").total == 0
        client.share_session("trip", "bob")
        client.unshare_session("trip", "bob")
        assert bob.search("remind me").total == 0

    def test_other_accounts_find_nothing(self, client: Any, connect_as: Callable[..., Any]) -> None:
        add(client, "trip", TRIP)
        rival = connect_as("rival", "alice")
        rival.create_session("own")
        assert rival.search("Casa Azul").total == 0
        assert rival.search("Casa Azul", target_uri="viking://user/alice/sessions/trip").total == 0

    def test_a_deleted_session_is_not_found(self, client: Any) -> None:
        add(client, "trip", TRIP)
        client.delete_session("trip")
        assert client.search("Casa Azul").total == 0
        add(client, "trip", GARDEN)
        assert {hit.text for hit in client.search("Casa Azul").messages} <= {text for _, text in GARDEN}
        assert found(client.search("tomatoes balcony water", limit=1)) == [("trip", 1)]
