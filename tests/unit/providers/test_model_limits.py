"""The limiter: how much a process asks of a model."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from holdfast.errors import UnavailableError
from holdfast.model.summaries import Prompt, Reply, TokenUsage
from holdfast.providers.limits import LimitedModel, Limiter
from holdfast.providers.openai import OpenAIChat
from holdfast.testing.model import Behaviour, running_model

PROMPT = Prompt(system="s" * 400, user="u" * 400, max_tokens=100)


def estimate(text: str) -> int:
    return len(text) // 4


class Hands:
    """A clock that only goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def limiter(hands: Hands, **limits: int) -> Limiter:
    return Limiter(clock=hands.clock, sleep=hands.sleep, **limits)


def test_calls_beyond_the_concurrency_wait() -> None:
    running, most, lock = 0, 0, threading.Lock()
    shared = Limiter(concurrency=3)

    def call() -> None:
        nonlocal running, most
        turn = shared.start(1)
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        shared.finish(turn, 1)

    together(call, 12)
    assert most == 3
    assert shared.running == 0


def test_turns_are_given_in_the_order_of_asking() -> None:
    shared, order = Limiter(concurrency=1), list[int]()
    first = shared.start(1)

    def call(number: int) -> None:
        turn = shared.start(1)
        order.append(number)
        shared.finish(turn, 1)

    threads = []
    for number in range(6):
        threads.append(threading.Thread(target=call, args=(number,)))
        threads[-1].start()
        wait_in_line(shared, number + 1)
    shared.finish(first, 1)
    for thread in threads:
        thread.join(10)
    assert order == list(range(6))


def test_a_small_call_does_not_overtake_a_large_one() -> None:
    hands = Hands()
    shared = limiter(hands, tokens_per_minute=100)
    shared.finish(shared.start(90), 90)
    order = list[int]()
    gate = threading.Event()

    def sleep(seconds: float) -> None:
        gate.wait(10)
        hands.sleep(seconds)

    shared._sleep = sleep

    def call(tokens: int) -> None:
        shared.finish(shared.start(tokens), tokens)
        order.append(tokens)

    threads = [threading.Thread(target=call, args=(tokens,)) for tokens in (50, 5)]
    for place, thread in enumerate(threads, 1):
        thread.start()
        wait_in_line(shared, place)
    gate.set()
    for thread in threads:
        thread.join(10)
    assert order == [50, 5]


def test_no_minute_has_more_calls_than_allowed() -> None:
    hands = Hands()
    shared = limiter(hands, requests_per_minute=5)
    starts = []
    for _ in range(17):
        starts.append(hands.now)
        turn = shared.start(1)
        starts[-1] = turn.started
        shared.finish(turn, 1)
        hands.now += 1
    for start in starts:
        assert sum(start <= other < start + 60 for other in starts) <= 5
    assert starts[-1] - starts[0] < 3 * 60 + 10


def test_no_minute_has_more_tokens_than_allowed() -> None:
    hands = Hands()
    shared = limiter(hands, tokens_per_minute=1000)
    starts = []
    for _ in range(10):
        turn = shared.start(300)
        starts.append(turn.started)
        shared.finish(turn, 300)
        hands.now += 1
    for start in starts:
        assert sum(300 for other in starts if start <= other < start + 60) <= 1000


def test_what_a_call_used_in_truth_counts() -> None:
    hands = Hands()
    shared = limiter(hands, tokens_per_minute=1000)
    shared.finish(shared.start(900), 100)
    before = hands.now
    shared.finish(shared.start(800), 900)
    assert hands.now == before
    shared.finish(shared.start(10), 10)
    assert hands.now >= before + 59


def test_a_call_larger_than_a_minute_is_let_through_alone() -> None:
    hands = Hands()
    shared = limiter(hands, tokens_per_minute=100)
    shared.finish(shared.start(50), 50)
    before = hands.now
    shared.finish(shared.start(500), 500)
    assert hands.now == pytest.approx(before + 60, abs=1)


def test_a_pause_holds_everybody() -> None:
    hands = Hands()
    shared = limiter(hands)
    shared.pause(12)
    assert shared.start(1).started >= 1012


def test_a_pause_that_is_too_long_is_told_at_once() -> None:
    hands = Hands()
    shared = limiter(hands)
    shared.pause(3600)
    with pytest.raises(UnavailableError) as raised:
        shared.start(1)
    assert raised.value.details["retry_after"] == 3600
    assert hands.now == 1000
    hands.now += 3600
    shared.start(1)


class Said:
    """A model that counts three tokens where we estimate two."""

    name = "said"

    def __init__(self, answer: Callable[[], None] = lambda: None) -> None:
        self._answer = answer

    def complete(self, prompt: Prompt) -> Reply:
        self._answer()
        usage = TokenUsage(prompt_tokens=300, completion_tokens=10, total_tokens=310)
        return Reply(text="", usage=usage)

    def close(self) -> None:
        pass


def test_the_providers_count_corrects_the_estimate() -> None:
    shared = Limiter()
    model = LimitedModel(Said(), shared, estimate)
    assert model.correction == 1.0
    model.complete(PROMPT)
    assert 1.0 < model.correction < 1.5
    for _ in range(40):
        model.complete(PROMPT)
    assert model.correction == pytest.approx(1.5, abs=0.01)
    assert shared.correction == model.correction


def test_tokens_are_reserved_as_corrected_with_the_whole_answer_and_settled_afterwards() -> None:
    hands = Hands()
    shared = limiter(hands)
    shared._correction = 2.0
    reserved = list[int]()
    model = LimitedModel(Said(lambda: reserved.append(shared._recent[-1].tokens)), shared, estimate)
    model.complete(PROMPT)
    assert reserved == [2 * 200 + 100]
    assert shared._recent[-1].tokens == 310


def test_a_failed_call_gives_its_turn_and_its_tokens_back() -> None:
    def fail() -> None:
        raise UnavailableError("gone", service="model", reason="gone")

    shared = Limiter(concurrency=1)
    model = LimitedModel(Said(fail), shared, estimate)
    for _ in range(3):
        with pytest.raises(UnavailableError):
            model.complete(PROMPT)
    assert shared.running == 0
    assert sum(call.tokens for call in shared._recent) == 0


def test_a_wait_that_the_provider_asks_for_is_kept_by_all_threads() -> None:
    with running_model(Behaviour(kind="limited", times=1, retry_after=0.4)) as server, opened(server.url) as model:
        with pytest.raises(UnavailableError):
            model.complete(PROMPT)
        before = time.monotonic()
        together(lambda: model.complete(PROMPT), 3)
        assert time.monotonic() - before >= 0.35
        assert server.calls == 4


def test_who_waits_is_let_go_when_the_model_is_closed() -> None:
    with running_model() as server, opened(server.url, concurrency=1) as model:
        server.gate.clear()
        errors = list[UnavailableError]()

        def call() -> None:
            try:
                model.complete(PROMPT)
            except UnavailableError as error:
                errors.append(error)

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        server.wait_for_calls(1)
        wait_in_line(model.limiter, 2)
        model.close()
        until(lambda: len(errors) >= 2)
        assert "closed" in {error.details["reason"] for error in errors}
        server.gate.set()
        for thread in threads:
            thread.join(10)
        assert server.calls == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_fork_does_not_inherit_the_calls_of_its_parent() -> None:
    shared = Limiter(concurrency=1)
    turn = shared.start(1)
    child = os.fork()
    if child == 0:
        shared.start(1)
        os._exit(0)
    late = threading.Timer(10, os.kill, (child, 9))
    late.start()
    _, status = os.waitpid(child, 0)
    late.cancel()
    assert status == 0
    assert shared.running == 1
    shared.finish(turn, 1)


@contextmanager
def opened(url: str, concurrency: int = 4) -> Iterator[LimitedModel]:
    model = LimitedModel(OpenAIChat("small", base_url=url), Limiter(concurrency=concurrency), estimate)
    try:
        yield model
    finally:
        model.close()


def together(call: Callable[[], object], count: int) -> None:
    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def wait_in_line(shared: Limiter, count: int) -> None:
    until(lambda: len(shared._waiting) == count)


def until(holds: Callable[[], bool]) -> None:
    late = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < late
        time.sleep(0.002)
