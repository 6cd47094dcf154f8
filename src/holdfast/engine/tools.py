"""What background work works with: a language model, if there is one, and vectors. Opened when first needed."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.config import Settings
from holdfast.context import tokens

if TYPE_CHECKING:
    from holdfast.providers.base import Embedder
    from holdfast.providers.limits import Limited

STRETCH = 0.001
"""How many seconds to compute before others get their turn."""
PAUSE = 0.00005
OTHERS_SHARE = 3
TEXTS_AT_ONCE = 16


class Tools:
    """One set for all threads of a process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._opened = False
        self.computing = threading.Lock()
        """Only one thread computes at a time: two would be no faster, and keep others waiting twice as long."""
        self._model: Limited | None = None
        self._embedder: Embedder | None = None

    @property
    def model(self) -> "Limited | None":
        self._open()
        return self._model

    def embed(self, texts: Sequence[str], breathe: Callable[[], None]) -> Any:
        """A vector for each text. On this machine a few at a time: others get their turn in between."""
        self._open()
        if self._embedder is None:
            raise AssertionError("closed")
        if self._settings.embedder != "static":
            return self._embedder.embed(texts)
        import numpy as np  # noqa: PLC0415 - as below

        pieces = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            pieces.append(self._embedder.embed(texts[start : start + TEXTS_AT_ONCE]))
            breathe()
        return np.concatenate(pieces)

    def _open(self) -> None:
        with self._lock:
            if not self._opened:
                from holdfast.providers.choose import open_embedder, open_model  # noqa: PLC0415 - numpy is heavy

                self._model = open_model(self._settings, tokens.estimate)
                self._embedder = open_embedder(self._settings)
                self._opened = True

    def close(self) -> None:
        with self._lock:
            for tool in (self._model, self._embedder):
                if tool is not None:
                    tool.close()
            self._model = self._embedder = None
            self._opened = False


def breathing(activity: Callable[[], int]) -> Callable[[], None]:
    """To be called time and again by what computes for long, so that others in this process get their turn.

    A thread that computes keeps the others waiting for milliseconds at each of their many short waits. While callers
    are active, which a growing `activity` tells, they get most of the time.
    """
    seen = activity()
    since = time.monotonic()

    def breathe() -> None:
        nonlocal seen, since
        if time.monotonic() - since < STRETCH:
            return
        before, seen = seen, activity()
        time.sleep(PAUSE if seen == before else STRETCH * OTHERS_SHARE)
        since = time.monotonic()

    return breathe
