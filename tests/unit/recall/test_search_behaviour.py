"""What a search makes of a query: speakers, roles, times, identifiers, scripts, uses, limits and targets."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import holdfast
from holdfast import Settings

RunTasks = Callable[..., None]
TODAY = datetime(2026, 6, 10, 12, tzinfo=UTC)
FILLER = [
    "Good morning.",
    "The weather is fine today.",
    "See you later then.",
    "That sounds great.",
    "No problem at all.",
]
Turn = tuple[Any, ...]


@pytest.fixture
def client(target: str) -> Iterator[holdfast.Client]:
    """A client without workers: tests decide when documents are indexed."""
    with holdfast.connect(target, account="acme", user="alice", settings=Settings(worker_threads=0)) as client:
        yield client


@pytest.fixture
def settle(target: str) -> Callable[[], None]:
    """Runs all background tasks, as another process would."""

    def run() -> None:
        settings = Settings(worker_threads=1, worker_poll_seconds=0.02)
        with holdfast.connect(target, account="acme", user="alice", settings=settings) as worker:
            worker.wait_until_idle(60)

    return run


def fill(client: holdfast.Client, session_id: str, turns: Sequence[Turn], days_ago: float = 20) -> None:
    """Add turns of text, role, peer and age in days. The last three may be missing."""
    messages = []
    for number, (text, role, peer, age) in enumerate((*turn, *(None,) * (4 - len(turn))) for turn in turns):
        at = TODAY - timedelta(days=days_ago if age is None else age) + timedelta(seconds=number)
        messages.append({"role": role or "user", "content": text, "peer_id": peer, "created_at": at})
    for first in range(0, len(messages), 100):
        client.batch_add_messages(session_id, messages[first : first + 100])


def best(client: holdfast.Client, query: str, **fields: Any) -> tuple[str, int]:
    hit = client.search(query, limit=1, as_of=TODAY, **fields).messages[0]
    return hit.session_id, hit.seq


def found(client: holdfast.Client, query: str, **fields: Any) -> set[tuple[str, int]]:
    return {(hit.session_id, hit.seq) for hit in client.search(query, as_of=TODAY, limit=100, **fields).messages}


def signals(client: holdfast.Client, query: str, **fields: Any) -> dict[str, float]:
    hit = client.search(query, limit=1, as_of=TODAY, **fields).messages[0]
    assert sum(reason.share for reason in hit.reasons) == pytest.approx(hit.score)
    return {reason.signal: reason.share for reason in hit.reasons}


def twice(settle: Callable[[], None]) -> Iterator[str]:
    """Before and after everything is indexed."""
    yield "pending"
    settle()
    yield "indexed"


def test_speakers_are_known_by_their_peer_or_by_their_name_in_the_text(
    client: holdfast.Client, settle: Callable[[], None]
) -> None:
    fill(client, "peers", [("I adopted a cat last week.", "user", "ann"), ("I adopted a dog too.", "user", "bob")])
    fill(
        client,
        "names",
        [("Carla: I painted the fence.",), ("Dmitri: I painted the fence.",), *((text,) for text in FILLER)],
    )
    for state in twice(settle):
        assert best(client, "What did Ann adopt?") == ("peers", 1), state
        assert best(client, "What did Bob adopt?") == ("peers", 2), state
        assert best(client, "What did Carla paint?") == ("names", 1), state
        assert best(client, "What did Dmitri paint?") == ("names", 2), state
        assert signals(client, "What did Dmitri paint?")["speaker"] > 0, state


def test_what_a_person_said_comes_first_unless_the_query_asks_for_the_assistant(
    client: holdfast.Client, settle: Callable[[], None]
) -> None:
    fill(client, "dinner", [(text,) for text in FILLER])
    fill(client, "food", [("I like risotto with mushrooms.",), ("Risotto with mushrooms is nice.", "assistant")])
    fill(client, "more", [(text, "assistant") for text in FILLER])
    for state in twice(settle):
        assert best(client, "risotto with mushrooms") == ("food", 1), state
        assert best(client, "What did you say about risotto with mushrooms?") == ("food", 2), state


def test_times_of_the_query_are_relative_to_as_of(client: holdfast.Client, settle: Callable[[], None]) -> None:
    for number, age in enumerate((1, 14, 45, 400)):
        fill(client, f"day{number}", [("We had lunch at the lake.",), *((text,) for text in FILLER)], days_ago=age)
    for state in twice(settle):
        assert best(client, "Where was lunch yesterday?")[0] == "day0", state
        assert best(client, "Where was lunch two weeks ago?")[0] == "day1", state
        assert best(client, "Where was lunch in April 2026?")[0] == "day2", state
        assert best(client, "Where was lunch last year?")[0] == "day3", state
        result = client.search("Where was lunch yesterday?", as_of="2026-05-28T12:00:00Z", limit=1)
        assert result.messages[0].session_id == "day1", state
        (time,) = result.query_plan.times
        assert (time.text, time.since.isoformat()) == ("yesterday", "2026-05-27T00:00:00+00:00")
        assert signals(client, "Where was lunch yesterday?")["time"] > 0, state


def test_only_the_time_brings_a_new_message_among_many_others(
    client: holdfast.Client, settle: Callable[[], None]
) -> None:
    fill(client, "old", [(f"Note {number} on a topic.",) for number in range(500)], days_ago=300)
    settle()
    fill(client, "new", [("Our cat got a vaccination.",)], days_ago=1)
    for state in twice(settle):
        assert best(client, "What happened yesterday?") == ("new", 1), state


@pytest.mark.parametrize("others", [3, 80])
def test_identifiers_words_of_any_script_and_rare_words_are_found_whole_and_in_pieces(
    client: holdfast.Client, settle: Callable[[], None], others: int
) -> None:
    texts = [
        "The setting is in config.yaml now.",
        "Renew the refresh_token before noon.",
        "It ships as ORD-4711 on Monday.",
        "狐狸在花园里睡觉。",
        "Das Gerät heißt Übermaß.",
        "キツネは庭にいる。",
    ]
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        fill(client, f"s{number}", [*((each,) for each in FILLER[:3]), (text, role), (FILLER[3],)])
    fill(
        client,
        "others",
        [(f"{FILLER[number % 5]} {number}", ["user", "assistant"][number % 2]) for number in range(others)],
    )
    whole = {
        0: ["config.yaml", "where is Config.YAML?"],
        1: ["refresh_token", "REFRESH_TOKEN"],
        2: ["ORD-4711", "4711", "what about order ORD-4711"],
        4: ["übermaß"],
    }
    words = {
        0: ["config", "yaml"],
        1: ["refresh token", "token"],
        2: ["ord 4711"],
        3: ["狐狸", "花园", "狐狸在哪里睡觉"],
        4: ["Ubermaß heißt"],
        5: ["キツネ"],
    }
    for state in twice(settle):
        for queries, position in ((whole, 1), (words, 3)):
            for number, given in queries.items():
                for query in given:
                    hits = client.search(query, limit=position, as_of=TODAY).messages
                    assert (f"s{number}", 4) in [(hit.session_id, hit.seq) for hit in hits], (state, query)


def test_newer_messages_come_first_among_equal_ones(client: holdfast.Client, settle: Callable[[], None]) -> None:
    for age in (500, 3, 90):
        fill(client, f"age{age}", [("The wifi password is on the fridge.",)], days_ago=age)
    for state in twice(settle):
        hits = client.search("wifi password", as_of=TODAY).messages
        assert [hit.session_id for hit in hits] == ["age3", "age90", "age500"], state


def test_limits_thresholds_times_and_targets_hold_for_pending_and_for_indexed_messages(
    client: holdfast.Client, settle: Callable[[], None]
) -> None:
    fill(client, "log", [(f"report {number} of the harbour", "user", None, 40 - number) for number in range(1, 31)])
    fill(client, "other", [("a report of the mountain",)])
    client.fork_session("log", 10, new_session_id="fork")
    fill(client, "fork", [("another report of the harbour",)])
    client.fork_session("fork", 11, new_session_id="second")
    for state in twice(settle):
        hits = client.search("report harbour", as_of=TODAY, limit=7).messages
        assert len(hits) == 7, state
        threshold = hits[3].score
        above = client.search("report harbour", as_of=TODAY, limit=100, score_threshold=threshold).messages
        assert min(hit.score for hit in above) == threshold, state
        since, until = TODAY - timedelta(days=30), TODAY - timedelta(days=20, hours=-1)
        expected = {("log", number) for number in range(10, 21)}
        assert found(client, "report harbour", since=since, until=until, target_uri="viking://session/log") == expected
        assert found(client, "report harbour", since=since, until=until) - {("other", 1)} >= expected, state
        everything = {("log", number) for number in range(1, 31)}
        assert found(client, "report harbour", target_uri="viking://session/log") == everything, state
        of_fork = {("fork", number) for number in range(1, 12)}
        assert found(client, "report harbour", target_uri="viking://session/fork") == of_fork, state
        for limit in (1, 4):
            limited = client.search("report harbour", target_uri="viking://session/fork", limit=limit, as_of=TODAY)
            assert len(limited.messages) == limit, state
        of_second = {("second", number) for number in range(1, 12)}
        assert found(client, "report harbour", target_uri="viking://session/second") == of_second, state
        assert found(client, "report", target_uri=["viking://session/other", "viking://session/second"]) == {
            *of_second,
            ("other", 1),
        }, state
        assert found(client, "report", target_uri="viking://user/alice") == {*everything, ("fork", 11), ("other", 1)}
        assert client.search("report harbour", since="2026-06-09", as_of=TODAY).total == 0, state


def test_a_query_without_words_has_scores_that_are_numbers(client: holdfast.Client, settle: Callable[[], None]) -> None:
    fill(client, "s", [(text,) for text in FILLER])
    for _ in twice(settle):
        for query in ("!? ---", "🦊", "of the", "。"):
            hits = client.search(query, as_of=TODAY).messages
            assert all(0 <= hit.score <= 1 for hit in hits), query
            for hit in hits:
                assert sum(reason.share for reason in hit.reasons) == pytest.approx(hit.score)


def test_used_documents_are_raised_after_a_commit_also_in_another_process(
    client: holdfast.Client, settle: Callable[[], None], target: str
) -> None:
    for number in range(1, 4):
        fill(client, f"s{number}", [("The spare key is under the pot.",)])
    settle()

    def scores(reader: holdfast.Client) -> dict[str, float]:
        hits = reader.search("spare key pot", as_of=datetime.now(UTC), context_type="message").messages
        return {hit.session_id: hit.score for hit in hits}

    before = scores(client)
    client.session_used(
        "now", ["viking://user/alice/sessions/s2#1", "viking://session/s2#1/", "viking://~/sessions/s2"]
    )
    assert scores(client)["s2"] == pytest.approx(before["s2"], abs=1e-4)
    client.add_message("now", "user", "hello")
    client.commit_session("now")
    settle()
    with holdfast.connect(target, account="acme", user="alice", settings=Settings(worker_threads=0)) as reader:
        for each in (client, reader):
            after = scores(each)
            assert max(after, key=lambda session_id: after[session_id]) == "s2"
            assert after["s2"] > before["s2"] + 0.01
            hit = next(hit for hit in each.search("spare key pot").messages if hit.session_id == "s2")
            assert "use" in {reason.signal for reason in hit.reasons}
    with holdfast.connect(target, account="acme", user="bob", settings=Settings(worker_threads=0)) as bob:
        client.share_session("s2", "bob")
        client.share_session("s3", "bob")
        shared = scores(bob)
        assert shared["s2"] == pytest.approx(shared["s3"], abs=1e-3), "the uses of others do not count"
