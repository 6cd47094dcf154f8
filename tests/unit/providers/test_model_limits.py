"""Rate limits of model calls."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from holdfast.errors import UnavailableError
from holdfast.model.summaries import Prompt, Reply, TokenUsage
from holdfast.providers.limits import RateLimitedModel, RateLimiter
from holdfast.providers.openai import OpenAIChat
from holdfast.testing.model import Behaviour, running_model

PROMPT = Prompt(system="s" * 400, user="u" * 400, max_tokens=100)


def estimate(text: str) -> int:
    return len(text) // 4


class FakeClock:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def make_limiter(clock: FakeClock, **limits: int) -> RateLimiter:
    return RateLimiter(clock=clock.read, sleep=clock.sleep, **limits)


def test_calls_beyond_the_concurrency_wait() -> None:
    running, max_running, lock = 0, 0, threading.Lock()
    limiter = RateLimiter(concurrency=3)

    def call() -> None:
        nonlocal running, max_running
        started = limiter.start(1)
        with lock:
            running += 1
            max_running = max(max_running, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        limiter.finish(started, 1)

    run_concurrently(call, 12)
    assert max_running == 3
    assert limiter.running == 0


def test_calls_start_in_the_order_in_which_they_came() -> None:
    limiter, order = RateLimiter(concurrency=1), list[int]()
    first = limiter.start(1)

    def call(number: int) -> None:
        started = limiter.start(1)
        order.append(number)
        limiter.finish(started, 1)

    threads = []
    for number in range(6):
        threads.append(threading.Thread(target=call, args=(number,)))
        threads[-1].start()
        wait_for_queue_length(limiter, number + 1)
    limiter.finish(first, 1)
    for thread in threads:
        thread.join(10)
    assert order == list(range(6))


def test_a_small_call_does_not_overtake_a_large_one() -> None:
    clock = FakeClock()
    limiter = make_limiter(clock, tokens_per_minute=100)
    limiter.finish(limiter.start(90), 90)
    order = list[int]()
    gate = threading.Event()

    def sleep(seconds: float) -> None:
        gate.wait(10)
        clock.sleep(seconds)

    limiter._sleep = sleep

    def call(tokens: int) -> None:
        limiter.finish(limiter.start(tokens), tokens)
        order.append(tokens)

    threads = [threading.Thread(target=call, args=(tokens,)) for tokens in (50, 5)]
    for count, thread in enumerate(threads, 1):
        thread.start()
        wait_for_queue_length(limiter, count)
    gate.set()
    for thread in threads:
        thread.join(10)
    assert order == [50, 5]


def test_no_minute_exceeds_the_limit_of_calls() -> None:
    clock = FakeClock()
    limiter = make_limiter(clock, requests_per_minute=5)
    starts = []
    for _ in range(17):
        started = limiter.start(1)
        starts.append(started.started_at)
        limiter.finish(started, 1)
        clock.now += 1
    for start in starts:
        assert sum(start <= other < start + 60 for other in starts) <= 5
    assert starts[-1] - starts[0] < 3 * 60 + 10


def test_no_minute_exceeds_the_limit_of_tokens() -> None:
    clock = FakeClock()
    limiter = make_limiter(clock, tokens_per_minute=1000)
    starts = []
    for _ in range(10):
        started = limiter.start(300)
        starts.append(started.started_at)
        limiter.finish(started, 300)
        clock.now += 1
    for start in starts:
        assert sum(300 for other in starts if start <= other < start + 60) <= 1000


def test_the_reported_tokens_of_a_call_replace_its_estimate() -> None:
    clock = FakeClock()
    limiter = make_limiter(clock, tokens_per_minute=1000)
    limiter.finish(limiter.start(900), 100)  # start() takes the estimate, finish() the reported tokens
    before = clock.now
    limiter.finish(limiter.start(800), 900)
    assert clock.now == before, "100 reported and 800 estimated tokens are within the limit"
    limiter.finish(limiter.start(10), 10)
    assert clock.now >= before + 59, "1000 reported tokens reach the limit until the minute is over"


def test_a_call_above_the_limit_of_tokens_starts_alone() -> None:
    clock = FakeClock()
    limiter = make_limiter(clock, tokens_per_minute=100)
    limiter.finish(limiter.start(50), 50)
    before = clock.now
    limiter.finish(limiter.start(500), 500)
    assert clock.now == pytest.approx(before + 60, abs=1)


def test_a_pause_delays_all_calls() -> None:
    clock = FakeClock()
    limiter = make_limiter(clock)
    limiter.pause(12)
    assert limiter.start(1).started_at >= 1012


def test_a_long_pause_raises_an_error_at_once() -> None:
    clock = FakeClock()
    limiter = make_limiter(clock)
    limiter.pause(3600)
    with pytest.raises(UnavailableError) as raised:
        limiter.start(1)
    assert raised.value.details["retry_after"] == 3600
    assert clock.now == 1000
    clock.now += 3600
    limiter.start(1)


class StubModel:
    """A model that counts three tokens for every two estimated ones. It calls `on_call` first."""

    name = "stub"

    def __init__(self, on_call: Callable[[], None] = lambda: None) -> None:
        self._on_call = on_call

    def complete(self, prompt: Prompt) -> Reply:
        self._on_call()
        usage = TokenUsage(prompt_tokens=300, completion_tokens=10, total_tokens=310)
        return Reply(text="", usage=usage)

    def close(self) -> None:
        pass


def test_the_providers_count_corrects_the_estimate() -> None:
    limiter = RateLimiter()
    model = RateLimitedModel(StubModel(), limiter, estimate)
    assert model.token_ratio == 1.0
    model.complete(PROMPT)
    assert 1.0 < model.token_ratio < 1.5
    for _ in range(40):
        model.complete(PROMPT)
    assert model.token_ratio == pytest.approx(1.5, abs=0.01)
    assert limiter.token_ratio == model.token_ratio


def test_estimated_tokens_are_reserved_until_the_provider_reports_the_real_number() -> None:
    clock = FakeClock()
    limiter = make_limiter(clock)
    limiter._token_ratio = 2.0
    reserved = list[int]()
    model = RateLimitedModel(StubModel(lambda: reserved.append(limiter._recent[-1].tokens)), limiter, estimate)
    model.complete(PROMPT)
    assert reserved == [2 * 200 + 100]
    assert limiter._recent[-1].tokens == 310


def test_a_failed_call_releases_its_slot_and_its_tokens() -> None:
    def fail() -> None:
        raise UnavailableError("gone", service="model", reason="gone")

    limiter = RateLimiter(concurrency=1)
    model = RateLimitedModel(StubModel(fail), limiter, estimate)
    for _ in range(3):
        with pytest.raises(UnavailableError):
            model.complete(PROMPT)
    assert limiter.running == 0
    assert sum(call.tokens for call in limiter._recent) == 0


def test_all_threads_respect_a_pause_that_the_provider_asks_for() -> None:
    with (
        running_model(Behaviour(kind="rate_limited", times=1, retry_after=0.4)) as server,
        open_limited_model(server.url) as model,
    ):
        with pytest.raises(UnavailableError):
            model.complete(PROMPT)
        before = time.monotonic()
        run_concurrently(lambda: model.complete(PROMPT), 3)
        assert time.monotonic() - before >= 0.35
        assert server.calls == 4


def test_waiting_calls_fail_when_the_model_is_closed() -> None:
    with running_model() as server, open_limited_model(server.url, concurrency=1) as model:
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
        wait_for_queue_length(model.limiter, 2)
        model.close()
        wait_until(lambda: len(errors) >= 2)
        assert "closed" in {error.details["reason"] for error in errors}
        server.gate.set()
        for thread in threads:
            thread.join(10)
        assert server.calls == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_fork_does_not_inherit_the_calls_of_its_parent() -> None:
    limiter = RateLimiter(concurrency=1)
    started = limiter.start(1)
    child = os.fork()
    if child == 0:
        limiter.start(1)
        os._exit(0)
    kill_timer = threading.Timer(10, os.kill, (child, 9))
    kill_timer.start()
    _, status = os.waitpid(child, 0)
    kill_timer.cancel()
    assert status == 0
    assert limiter.running == 1
    limiter.finish(started, 1)


@contextmanager
def open_limited_model(url: str, concurrency: int = 4) -> Iterator[RateLimitedModel]:
    model = RateLimitedModel(OpenAIChat("small", base_url=url), RateLimiter(concurrency=concurrency), estimate)
    try:
        yield model
    finally:
        model.close()


def run_concurrently(call: Callable[[], object], count: int) -> None:
    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def wait_for_queue_length(limiter: RateLimiter, count: int) -> None:
    wait_until(lambda: len(limiter._waiting) == count)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)
