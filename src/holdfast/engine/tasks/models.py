"""What background work works with: a language model, if there is one, and vectors. Opened when first needed."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from holdfast import lazy
from holdfast.config import Settings
from holdfast.errors import UnavailableError
from holdfast.providers import configured
from holdfast.text import tokens

if TYPE_CHECKING:
    from holdfast.providers.base import Embedder
    from holdfast.providers.limits import LimitedModel

STRETCH = 0.001
"""How many seconds to compute before others get their turn."""
PAUSE = 0.00005
OTHERS_SHARE = 3
HERE_AT_ONCE, AT_ONCE = 16, 256


class Vectors:
    """Vectors for one summary, and what they cost."""

    def __init__(self, embedder: "Embedder", at_once: int, yield_cpu: Callable[[], None]) -> None:
        self._embedder = embedder
        self._at_once = at_once
        self._yield_cpu = yield_cpu
        self.tokens = 0
        self.notes: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        """A row for each text. Where they cannot be had, nothing is like anything, and a summary does without."""
        np = lazy.numpy
        rows = []
        try:
            for start in range(0, len(texts), self._at_once):
                embedded = self._embedder.embed(texts[start : start + self._at_once])
                rows.append(embedded.vectors)
                self.tokens += embedded.tokens
                self._yield_cpu()
        except UnavailableError as error:
            self.notes.append(f"no vectors were used: {error.message}")
            return np.zeros((len(texts), 1), dtype=np.float32)
        return np.concatenate(rows) if rows else np.zeros((0, 1), dtype=np.float32)


class Models:
    """One set for all threads of a process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._computing = threading.Lock()
        self._opened: tuple[LimitedModel | None, Embedder] | None = None

    @property
    def model(self) -> "LimitedModel | None":
        return self._open()[0]

    def vectors(self, yield_cpu: Callable[[], None]) -> Vectors:
        """On this machine a few texts at a time: others get their turn in between."""
        return Vectors(self._open()[1], HERE_AT_ONCE if self._settings.embedder == "static" else AT_ONCE, yield_cpu)

    def computing(self) -> AbstractContextManager[object]:
        """Only one thread computes at a time: two would be no faster, and keep others waiting twice as long.

        Who asks another machine for vectors waits rather than computes.
        """
        return self._computing if self._settings.embedder == "static" else nullcontext()

    def close(self) -> None:
        with self._lock:
            opened, self._opened = self._opened, None
        for tool in opened or ():
            if tool is not None:
                tool.close()

    def _open(self) -> "tuple[LimitedModel | None, Embedder]":
        with self._lock:
            if self._opened is None:
                model = configured.open_model(self._settings, tokens.estimate)
                self._opened = model, configured.open_embedder(self._settings)
            return self._opened


def cpu_yielder(activity: Callable[[], int]) -> Callable[[], None]:
    """To be called time and again by what computes for long, so that others in this process get their turn.

    A thread that computes keeps the others waiting for milliseconds at each of their many short waits. While callers
    are active, which a growing `activity` tells, they get most of the time.
    """
    seen = activity()
    since = time.monotonic()

    def yield_cpu() -> None:
        nonlocal seen, since
        if time.monotonic() - since < STRETCH:
            return
        before, seen = seen, activity()
        time.sleep(PAUSE if seen == before else STRETCH * OTHERS_SHARE)
        since = time.monotonic()

    return yield_cpu
