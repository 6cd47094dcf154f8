"""Rate limits of a model: concurrent requests, requests and tokens per minute, and pauses set by the provider."""

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
MAX_WAIT_SECONDS = 60.0
"""For a longer pause a call raises an error instead of blocking its thread."""
POLL_SECONDS = 0.25
"""How often a waiting call checks whether it was cancelled."""
SMOOTHING = 0.2
"""The weight of the last call in `token_ratio`."""
MIN_COMPARED_TOKENS = 20
"""An estimate below this says nothing about the accuracy of estimates."""


class StartedCall:
    """When a call started, and how many tokens it counts for."""

    __slots__ = ("started_at", "tokens")

    def __init__(self, started_at: float, tokens: int) -> None:
        self.started_at = started_at
        self.tokens = tokens


class RateLimiter:
    """Starts calls in the order in which they came. All threads of a process share it.

    In no minute more than `requests_per_minute` calls start, nor do they use more than `tokens_per_minute`. A call
    counts with its estimated tokens until the provider reports the real number. 0 means no limit. A call that exceeds
    the tokens of a whole minute starts when no other call counts.
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
        self._requests_per_minute = requests_per_minute
        self._tokens_per_minute = tokens_per_minute
        self._clock = clock
        self._sleep = sleep
        self.reset()
        _limiters.add(self)

    def reset(self) -> None:
        """Forget all calls. In a forked child, running and waiting calls belong to the parent."""
        self._condition = threading.Condition()
        self._waiting: deque[object] = deque()
        self._recent: deque[StartedCall] = deque()
        self._running = 0
        self._paused_until = 0.0
        self._token_ratio = 1.0

    @property
    def token_ratio(self) -> float:
        """How many tokens the provider counts per estimated token, smoothed over the last calls."""
        return self._token_ratio

    @property
    def running(self) -> int:
        return self._running

    def start(self, tokens: int, is_cancelled: Callable[[], bool] = lambda: False) -> StartedCall:
        """Wait until the call may start. The caller must call `finish` afterwards.

        Raises `UnavailableError` if the call is cancelled while it waits.
        """
        ticket = object()
        with self._condition:
            self._waiting.append(ticket)
        try:
            while True:
                with self._condition:
                    wait = self._seconds_until_turn(ticket, tokens)
                    if wait == 0.0:
                        return self._admit(tokens)
                    if is_cancelled():
                        raise unavailable("the model was closed while a call waited for its turn", reason="closed")
                    if wait is None:
                        self._condition.wait(POLL_SECONDS)
                if wait is not None:
                    self._sleep(min(wait, POLL_SECONDS))
        finally:
            with self._condition, suppress(ValueError):
                self._waiting.remove(ticket)
                self._condition.notify_all()

    def finish(self, call: StartedCall, tokens: int) -> None:
        """End a call that used `tokens`."""
        with self._condition:
            call.tokens = tokens
            self._running -= 1
            self._condition.notify_all()

    def pause(self, seconds: float) -> None:
        """Start no call for this long, because the provider asked for it."""
        with self._condition:
            self._paused_until = max(self._paused_until, self._clock() + seconds)

    def update_token_ratio(self, estimated: int, counted: int) -> None:
        """Compare the estimated tokens of a prompt with the tokens that the provider counted."""
        if estimated < MIN_COMPARED_TOKENS or counted <= 0:
            return
        with self._condition:
            ratio = min(max(counted / estimated, 0.1), 10.0)
            self._token_ratio += SMOOTHING * (ratio - self._token_ratio)

    def _admit(self, tokens: int) -> StartedCall:
        call = StartedCall(self._clock(), tokens)
        self._recent.append(call)
        self._running += 1
        self._waiting.popleft()
        self._condition.notify_all()
        return call

    def _seconds_until_turn(self, ticket: object, tokens: int) -> float | None:
        """Seconds until the first waiting call may start, or None if the call must wait for another call."""
        now = self._clock()
        pause = self._paused_until - now
        if pause > MAX_WAIT_SECONDS:
            raise unavailable(
                f"the model's provider asked for a pause; try again in {pause:.0f} s",
                reason="paused",
                retry_after=pause,
            )
        if self._waiting[0] is not ticket or self._running >= self._concurrency:
            return None
        while self._recent and self._recent[0].started_at <= now - MINUTE:
            self._recent.popleft()
        return max(0.0, pause, self._seconds_until_request_fits(now), self._seconds_until_tokens_fit(now, tokens))

    def _seconds_until_request_fits(self, now: float) -> float:
        if not self._requests_per_minute or len(self._recent) < self._requests_per_minute:
            return 0.0
        return self._recent[-self._requests_per_minute].started_at + MINUTE - now

    def _seconds_until_tokens_fit(self, now: float, tokens: int) -> float:
        if not self._tokens_per_minute:
            return 0.0
        used = sum(call.tokens for call in self._recent)
        wait = 0.0
        for call in self._recent:
            if used + tokens <= self._tokens_per_minute:
                break
            used -= call.tokens
            wait = call.started_at + MINUTE - now
        return wait


class RateLimitedModel:
    """A chat model whose calls pass a rate limiter. `estimate` estimates the number of tokens of a text."""

    def __init__(self, model: ChatModel, limiter: RateLimiter, estimate: Callable[[str], int]) -> None:
        self._model = model
        self._estimate = estimate
        self._closed = False
        self.limiter = limiter

    def __repr__(self) -> str:
        return f"RateLimitedModel({self._model!r})"

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def token_ratio(self) -> float:
        return self.limiter.token_ratio

    def complete(self, prompt: Prompt) -> Reply:
        schema = msgspec.json.encode(prompt.schema).decode() if prompt.schema else ""
        estimated = sum(self._estimate(text) for text in (prompt.system, prompt.user, schema))
        limiter = self.limiter
        call = limiter.start(round(estimated * limiter.token_ratio) + prompt.max_tokens, lambda: self._closed)
        used = 0  # a failed call uses no tokens
        try:
            reply = self._model.complete(prompt)
            limiter.update_token_ratio(estimated, reply.usage.prompt_tokens)
            used = reply.usage.total_tokens or call.tokens
        except UnavailableError as error:
            if "retry_after" in error.details:
                limiter.pause(error.details["retry_after"])
            raise
        finally:
            limiter.finish(call, used)
        return reply

    def close(self) -> None:
        """Close the model. Calls that wait for their turn fail at once."""
        self._closed = True
        self._model.close()


_limiters = forking.reset_in_child(RateLimiter.reset)
