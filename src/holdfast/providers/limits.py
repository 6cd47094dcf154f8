"""How much a process may ask of a model: at the same time, in a minute, and not at all for a while."""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import msgspec

from holdfast import forking
from holdfast.errors import UnavailableError
from holdfast.model.summaries import Prompt, Reply
from holdfast.providers.base import ChatModel, unavailable

MINUTE = 60.0
MAX_WAIT = 60.0
"""A pause longer than this is told to the caller instead of waited for: a thread has better things to do."""
SLICE = 0.25
"""How often who waits looks whether it still wants to."""
SMOOTHING = 0.2
MIN_REPORTED = 20
"""Below so many tokens an estimate says nothing about estimates."""


class Call:
    """One call that was let through: when, and for how many tokens it counts."""

    __slots__ = ("started", "tokens")

    def __init__(self, started: float, tokens: int) -> None:
        self.started = started
        self.tokens = tokens


class Limiter:
    """Lets calls through one after the other, in the order they came. Shared by all threads of a process.

    In no minute do more calls start than `requests_per_minute`, nor do they use more than `tokens_per_minute`, counted
    as estimated when they start and as told by the provider once it answered. 0 is no limit. A single call that is
    larger than a whole minute's tokens is let through when nothing else counts.
    """

    def __init__(
        self,
        *,
        concurrency: int = 4,
        requests_per_minute: int = 0,
        tokens_per_minute: int = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._concurrency = concurrency
        self._requests = requests_per_minute
        self._tokens = tokens_per_minute
        self._clock = clock
        self._sleep = sleep
        self.reset()
        _limiters.add(self)

    def reset(self) -> None:
        """Forget all calls. In a forked child, those that run or wait are the parent's."""
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._recent: deque[Call] = deque()
        self._running = 0
        self._paused_until = 0.0
        self._correction = 1.0

    @property
    def correction(self) -> float:
        """How many tokens the provider counts for each that we estimate, smoothed over the last calls."""
        return self._correction

    @property
    def running(self) -> int:
        return self._running

    def start(self, tokens: int, unwanted: Callable[[], bool] = lambda: False) -> Call:
        """Wait for a turn and take it; `finish` must follow. Raises `UnavailableError` if it became `unwanted`."""
        place = object()
        with self._changed:
            self._waiting.append(place)
        try:
            while True:
                with self._changed:
                    wait = self._wait_of(place, tokens)
                    if wait == 0.0:
                        return self._let_through(tokens)
                    if unwanted():
                        raise unavailable("the model was closed while a call waited for its turn", reason="closed")
                    if wait is None:
                        self._changed.wait(SLICE)
                if wait is not None:
                    self._sleep(min(wait, SLICE))
        finally:
            with self._changed, suppress(ValueError):
                self._waiting.remove(place)
                self._changed.notify_all()

    def finish(self, call: Call, tokens: int) -> None:
        """The call is over and used `tokens` in truth."""
        with self._changed:
            call.tokens = tokens
            self._running -= 1
            self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Nobody starts for so long: the provider asked for it."""
        with self._changed:
            self._paused_until = max(self._paused_until, self._clock() + seconds)

    def learn(self, estimated: int, told: int) -> None:
        """What a prompt was estimated at, and what the provider counted."""
        if estimated < MIN_REPORTED or told <= 0:
            return
        with self._changed:
            ratio = min(max(told / estimated, 0.1), 10.0)
            self._correction += SMOOTHING * (ratio - self._correction)

    def _let_through(self, tokens: int) -> Call:
        call = Call(self._clock(), tokens)
        self._recent.append(call)
        self._running += 1
        self._waiting.popleft()
        self._changed.notify_all()
        return call

    def _wait_of(self, place: object, tokens: int) -> float | None:
        """Seconds until the first in line may start; None for the others, who wait until something changes."""
        now = self._clock()
        pause = self._paused_until - now
        if pause > MAX_WAIT:
            raise unavailable(
                f"the model's provider asked to be left alone for {pause:.0f} s more",
                reason="paused",
                retry_after=pause,
            )
        if self._waiting[0] is not place or self._running >= self._concurrency:
            return None
        while self._recent and self._recent[0].started <= now - MINUTE:
            self._recent.popleft()
        return max(0.0, pause, self._until_a_request_fits(now), self._until_tokens_fit(now, tokens))

    def _until_a_request_fits(self, now: float) -> float:
        if not self._requests or len(self._recent) < self._requests:
            return 0.0
        return self._recent[-self._requests].started + MINUTE - now

    def _until_tokens_fit(self, now: float, tokens: int) -> float:
        if not self._tokens:
            return 0.0
        used = sum(call.tokens for call in self._recent)
        wait = 0.0
        for call in self._recent:
            if used + tokens <= self._tokens:
                break
            used -= call.tokens
            wait = call.started + MINUTE - now
        return wait


class LimitedModel:
    """A model whose calls wait for their turn at a limiter. `estimate` tells the tokens of a text."""

    def __init__(self, model: ChatModel, limiter: Limiter, estimate: Callable[[str], int]) -> None:
        self._model = model
        self._estimate = estimate
        self._closed = False
        self.limiter = limiter

    def __repr__(self) -> str:
        return f"Limited({self._model!r})"

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def correction(self) -> float:
        return self.limiter.correction

    def complete(self, prompt: Prompt) -> Reply:
        schema = msgspec.json.encode(prompt.schema).decode() if prompt.schema else ""
        estimated = sum(self._estimate(text) for text in (prompt.system, prompt.user, schema))
        limiter = self.limiter
        call = limiter.start(round(estimated * limiter.correction) + prompt.max_tokens, lambda: self._closed)
        used = 0  # a call that fails is not charged for
        try:
            reply = self._model.complete(prompt)
            limiter.learn(estimated, reply.usage.prompt_tokens)
            used = reply.usage.total_tokens or call.tokens
        except UnavailableError as error:
            if "retry_after" in error.details:
                limiter.pause(error.details["retry_after"])
            raise
        finally:
            limiter.finish(call, used)
        return reply

    def close(self) -> None:
        """Those who still wait for a turn are told so at once."""
        self._closed = True
        self._model.close()


_limiters = forking.reset_in_child(Limiter.reset)
