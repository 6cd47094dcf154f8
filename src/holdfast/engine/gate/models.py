"""The language model and the embedder of an engine. The gate and the workers share them."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from holdfast import forking, lazy
from holdfast.config import Settings
from holdfast.errors import UnavailableError
from holdfast.providers import configured
from holdfast.providers.static_vectors import StaticEmbedder
from holdfast.text import tokens

if TYPE_CHECKING:
    from holdfast.providers.base import Embedder, EmbeddingResult
    from holdfast.providers.limits import RateLimitedModel
    from holdfast.providers.rerank import Reranker

A = TypeVar("A")
LOCAL_BATCH_SIZE = 16
"""Texts per call of an embedder on this machine. Small, so that the CPU can be yielded between two batches."""
REMOTE_BATCH_SIZE = 256
QUERY_TIMEOUT_SECONDS = 5.0
"""How long a search waits for the vector of its query."""
QUERY_PAUSE_SECONDS = 10.0
"""How long after that searches do without."""


class BatchEmbedder:
    """Embeds the texts of one summary in batches, and counts the tokens that this costs."""

    def __init__(self, embedder: "Embedder", batch_size: int) -> None:
        self._embedder = embedder
        self._batch_size = batch_size
        self.tokens = 0
        self.notes: list[str] = []

    def embed(self, texts: Sequence[str], yield_cpu: Callable[[], None]) -> Any:
        """Return a matrix with a row for each text. Call `yield_cpu` between batches.

        If the embedder is unavailable, all rows are zero, so that no two texts count as similar. The summary is then
        made without comparing sentences. The reason is added to `notes`.
        """
        np = lazy.numpy
        rows = []
        try:
            for start in range(0, len(texts), self._batch_size):
                embedded = self._embedder.embed(texts[start : start + self._batch_size])
                rows.append(embedded.vectors)
                self.tokens += embedded.tokens
                yield_cpu()
        except UnavailableError as error:
            self.notes.append(f"no vectors were used: {error.message}")
            return np.zeros((len(texts), 1), dtype=np.float32)
        return np.concatenate(rows) if rows else np.zeros((0, 1), dtype=np.float32)


class ImpatientEmbedder:
    """An embedder that is not asked for some seconds after it was unavailable: each search would wait for it."""

    def __init__(self, embedder: "Embedder") -> None:
        self._embedder = embedder
        self._failure: tuple[float, UnavailableError] | None = None

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def space(self) -> str:
        return self._ask(lambda: self._embedder.space)

    @property
    def dimensions(self) -> int:
        return self._ask(lambda: self._embedder.dimensions)

    def embed(self, texts: Sequence[str]) -> "EmbeddingResult":
        return self._ask(lambda: self._embedder.embed(texts))

    def close(self) -> None:
        self._embedder.close()

    def _ask(self, question: Callable[[], A]) -> A:
        failure = self._failure
        if failure is not None and time.monotonic() < failure[0]:
            raise UnavailableError(failure[1].message, service="model", reason="paused")
        try:
            answer = question()
        except UnavailableError as error:
            self._failure = time.monotonic() + QUERY_PAUSE_SECONDS, error
            raise
        self._failure = None
        return answer


class Models:
    """The configured model and embedder. Both are opened when first needed, whether or not workers run."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.reset_after_fork()
        _all_models.add(self)

    def reset_after_fork(self) -> None:
        """Forget open connections: in a forked child they belong to the parent."""
        self._lock = threading.Lock()
        self._opened: tuple[RateLimitedModel | None, Embedder] | None = None
        self._query_embedder: ImpatientEmbedder | None = None
        self._reranker: Reranker | None = None

    @property
    def language_model(self) -> "RateLimitedModel | None":
        return self._open()[0]

    @property
    def embedder(self) -> "Embedder":
        return self._open()[1]

    def embedder_of(self, space: str) -> "Embedder | None":
        """The embedder of a space: the configured one, or the static one, which every installation has."""
        embedder = self.embedder
        if space == StaticEmbedder.space:  # a server is not asked for its space then
            return embedder if isinstance(embedder, StaticEmbedder) else StaticEmbedder()
        return embedder if embedder.space == space else None

    def query_embedder_of(self, space: str) -> "Embedder | None":
        """The embedder of a space, for the query of a search, which does not wait long for it."""
        if self._settings.embedder != "openai" or space == StaticEmbedder.space:
            return self.embedder_of(space)
        with self._lock:
            if self._query_embedder is None:
                seconds = min(self._settings.model_timeout_seconds, QUERY_TIMEOUT_SECONDS)
                settings = msgspec.structs.replace(self._settings, model_timeout_seconds=seconds)
                self._query_embedder = ImpatientEmbedder(configured.open_embedder(settings))
            embedder = self._query_embedder
        return embedder if embedder.space == space else None

    @property
    def reranker(self) -> "Reranker | None":
        """The service that ranks what a search found, if one is configured. A search does not wait long for it."""
        with self._lock:
            if self._reranker is None:
                seconds = min(self._settings.model_timeout_seconds, QUERY_TIMEOUT_SECONDS)
                settings = msgspec.structs.replace(self._settings, model_timeout_seconds=seconds)
                self._reranker = configured.open_reranker(settings)
            return self._reranker

    def is_local(self, embedder: "Embedder") -> bool:
        """Whether an embedder computes on this machine."""
        return self._settings.embedder != "openai" or embedder is not self.embedder

    def new_embedder(self) -> BatchEmbedder:
        batch_size = REMOTE_BATCH_SIZE if self._settings.embedder == "openai" else LOCAL_BATCH_SIZE
        return BatchEmbedder(self._open()[1], batch_size)

    def close(self) -> None:
        with self._lock:
            opened, self._opened = self._opened, None
            query_embedder, self._query_embedder = self._query_embedder, None
            reranker, self._reranker = self._reranker, None
        for model in (*(opened or ()), query_embedder, reranker):
            if model is not None:
                model.close()

    def _open(self) -> "tuple[RateLimitedModel | None, Embedder]":
        with self._lock:
            if self._opened is None:
                model = configured.open_model(self._settings, tokens.estimate)
                self._opened = model, configured.open_embedder(self._settings)
            return self._opened


_all_models = forking.reset_in_child(Models.reset_after_fork)
