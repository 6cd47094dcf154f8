"""A message is found by the next call after its append, whoever indexes it and whenever; what was replaced is not."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import holdfast
from holdfast import Settings
from holdfast.engine.recall import document_search, pending

NO_WORKERS = Settings(worker_threads=0)
EAGER = Settings(worker_threads=2, worker_poll_seconds=0.01)
BULK = 5_000
ADD_IN_ANOTHER_PROCESS = """
import sys
import holdfast

with holdfast.connect(sys.argv[1], settings=holdfast.Settings(worker_threads=0)) as client:
    for number, line in enumerate(sys.stdin, 1):
        client.add_message("remote", "user", line.strip())
        print(number, flush=True)
"""


@pytest.fixture
def client(target: str) -> Iterator[holdfast.Client]:
    with holdfast.connect(target, settings=NO_WORKERS) as client:
        yield client


def best(client: holdfast.Client, query: str) -> tuple[str, int]:
    hit = client.search(query, limit=1, context_type="message").messages[0]
    return hit.session_id, hit.seq


def name_of(number: int) -> str:
    return f"k{number:05}"


def add_bulk(client: holdfast.Client, session_id: str, count: int) -> None:
    for first in range(0, count, 100):
        numbers = range(first, min(first + 100, count))
        messages = [{"role": "user", "content": f"The code of {name_of(number)} is {number}."} for number in numbers]
        client.batch_add_messages(session_id, messages)


def index(target: str) -> None:
    with holdfast.connect(target, settings=EAGER) as worker:
        worker.wait_until_idle(60)


def test_each_message_is_found_by_the_next_call_without_workers_and_after_they_ran(
    client: holdfast.Client, target: str
) -> None:
    for round_number in range(3):
        for number in range(round_number * 4, round_number * 4 + 4):
            client.add_message(
                f"s{number % 2}", "assistant" if number % 2 else "user", f"The {name_of(number)} is blue."
            )
            assert best(client, f"{name_of(number)} blue") == (f"s{number % 2}", number // 2 + 1)
        index(target)
        for number in range(round_number * 4 + 4):
            assert best(client, f"{name_of(number)} blue") == (f"s{number % 2}", number // 2 + 1)


def test_each_message_is_found_while_workers_index(target: str) -> None:
    with holdfast.connect(target, settings=EAGER) as client:
        problems: list[Any] = []

        def add_and_search(session_id: str) -> None:
            for number in range(25):
                word = name_of(number) + session_id
                client.add_message(session_id, "user", f"The {word} is blue.")
                if (found := best(client, word)) != (session_id, number + 1):
                    problems.append((word, found))

        threads = [threading.Thread(target=add_and_search, args=(f"thread{letter}",)) for letter in "xyz"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert problems == []
        client.wait_until_idle(60)
        assert best(client, name_of(7) + "thready") == ("thready", 8)


def test_what_another_process_adds_is_found_at_once(client: holdfast.Client, target: str) -> None:
    command = [sys.executable, "-c", ADD_IN_ANOTHER_PROCESS, target]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(1, 7):
            process.stdin.write(f"The {name_of(number)} is green.\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{number}\n"
            assert best(client, f"{name_of(number)} green") == ("remote", number)
            if number == 4:
                index(target)
        process.stdin.close()
        assert process.wait(20) == 0


def test_messages_of_a_bulk_are_found_at_once(client: holdfast.Client) -> None:
    add_bulk(client, "bulk", BULK)
    for number in (0, BULK // 2, BULK - 1):
        result = client.search(f"code of {name_of(number)}", limit=1)
        assert [(hit.session_id, hit.seq) for hit in result.messages] == [("bulk", number + 1)]
        assert result.query_plan.notes == []


def test_a_search_that_cannot_index_in_time_finds_the_newest_and_says_so(
    client: holdfast.Client, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "MAX_MESSAGES", 20)
    monkeypatch.setattr(document_search, "INDEXING_SECONDS", -1.0)
    add_bulk(client, "bulk", 50)
    client.add_message("new", "user", f"The {name_of(77)} is here.")
    assert best(client, name_of(49)) == ("bulk", 50)
    assert best(client, name_of(77)) == ("new", 1)
    (note,) = client.search(name_of(1)).query_plan.notes
    assert note == "messages of 1 sessions are not indexed yet; search again later"
    index(target)
    assert best(client, name_of(1)) == ("bulk", 2)
    assert client.search(name_of(1)).query_plan.notes == []


def test_messages_that_are_indexed_during_a_search_are_counted_once(
    client: holdfast.Client, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_bulk(client, "s", 8)
    index(target)
    client.add_message("s", "user", f"The {name_of(8)} is here.")
    read_pending = document_search._read_pending
    is_indexed = False

    def index_meanwhile(*arguments: Any) -> Any:
        """Let another thread index and search, so that the table in memory is newer than what is pending here."""
        nonlocal is_indexed
        waiting = read_pending(*arguments)
        if not is_indexed:
            is_indexed = True
            index(target)
            with ThreadPoolExecutor(1) as thread:
                thread.submit(client.search, "code").result(30)
        return waiting

    monkeypatch.setattr(document_search, "_read_pending", index_meanwhile)
    result = client.search(f"code {name_of(8)}", mode="context")
    assert result.messages[0].seq == 9
    assert result.stats is not None
    assert result.stats.searched == 9


def test_the_old_text_of_a_regenerated_overview_is_not_found(client: holdfast.Client, target: str) -> None:
    places = ("kitchen", "garden", "office", "harbour", "library", "museum", "station", "theatre", "market", "castle")
    for action in ("enter", "photograph"):
        for place in places:
            client.add_message("s", "user", f"Never {action} the {place} without the permission of its owner.")
    client.commit_session("s")
    index(target)

    def overview(place: str) -> tuple[float, bool]:
        """The score of the overview for the name of a place, and whether it has the name."""
        (hit,) = client.search(place, context_type="overview", read_content=True).overviews
        return hit.score, place in (hit.content or "").lower()

    before = {place: overview(place) for place in places}
    assert all(has_name for _, has_name in before.values())
    client.resummarise("s")
    with holdfast.connect(target, settings=Settings(worker_threads=1, rules_tokens=100)) as worker:
        worker.wait_until_idle(60)
    after = {place: overview(place) for place in places}
    lost = [place for place in places if not after[place][1]]
    assert lost
    assert all(after[place][0] < before[place][0] / 2 for place in lost)


def test_a_session_that_was_deleted_and_created_again_has_only_its_new_messages(
    client: holdfast.Client, target: str
) -> None:
    states: list[Callable[[], None]] = [lambda: None, lambda: index(target)]
    for number in range(6):
        add_bulk(client, "s", 3)
        client.add_message("s", "user", f"The {name_of(100 + number)} is old.")
        states[number % 2]()
        assert best(client, name_of(100 + number)) == ("s", 4)
        client.delete_session("s")
        assert client.search(name_of(100 + number)).total == 0
        states[number // 2 % 2]()
    assert client.search("code", mode="context").stats.searched == 0  # type: ignore[union-attr]
