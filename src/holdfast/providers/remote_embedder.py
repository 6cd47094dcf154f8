"""Embedders behind the OpenAI API: OpenAI itself, gateways and self-hosted servers."""

import hashlib
from collections.abc import Sequence
from typing import Any

from holdfast import forking, lazy
from holdfast.errors import FailedPreconditionError, HoldfastError
from holdfast.providers.base import EmbeddingResult, unavailable
from holdfast.providers.http_service import HttpService, RequestRejectedError, authorization_header, without_secrets
from holdfast.providers.openai import URL

MAX_BATCH_TEXTS = 128
MAX_TEXT_CHARS = 5_000
"""Longer texts are truncated: models with a limit of 8,192 tokens reject them, and their vectors are less specific."""
MIN_TEXT_CHARS = 400
"""The shortest text that is tried if a server rejects longer ones. Some models accept only 512 tokens."""
MAX_TOKENS = 1_000_000_000
"""A server that says that a request had more is not believed."""
TOO_LARGE = 413
URL_HASH_CHARS = 8


class OpenAIEmbedder:
    """A model behind `POST {base_url}/embeddings`.

    Servers differ in how many texts a request may have, and in the length of a text. If a server rejects a request, it
    gets fewer texts, then shorter ones. The number of texts that worked is used from then on.
    """

    def __init__(self, model: str, *, base_url: str = URL, api_key: str | None = None, timeout: float = 120.0) -> None:
        self._model = model
        self._service = HttpService(base_url, api_key, authorization_header(api_key), timeout, "embedding")
        self._url_hash = hashlib.sha256(without_secrets(base_url).rstrip("/").encode()).hexdigest()[:URL_HASH_CHARS]
        self._dimensions = 0
        self._lock = forking.Lock()
        self._batch_texts = MAX_BATCH_TEXTS

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._model!r}, {self._service})"

    @property
    def name(self) -> str:
        return f"openai/{self._model}"

    @property
    def space(self) -> str:
        """The model at its URL, with the length of its vectors. Until that is known, a request is sent.

        Another server can have another model of the same name, and a server can get another one.
        """
        return f"{self.name}@{self._url_hash}/{self.dimensions}"

    @property
    def dimensions(self) -> int:
        """The length of the server's vectors. It is known after the first answer; until then, a request is sent."""
        if not self._dimensions:
            self._embed_batch(["dimensions"])
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> EmbeddingResult:
        np = lazy.numpy
        with_content = [row for row, text in enumerate(texts) if text.strip()]  # some servers reject an empty text
        batches = []
        tokens = 0
        start = 0
        while start < len(with_content):
            rows = with_content[start : start + self._batch_texts]
            embedded = self._embed_batch([texts[row][:MAX_TEXT_CHARS] for row in rows])
            batches.append(embedded.vectors)
            tokens += embedded.tokens
            start += len(rows)
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        if batches:
            vectors[with_content] = np.concatenate(batches)
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)  # squares may be too large
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return EmbeddingResult(vectors, tokens)

    def close(self) -> None:
        self._service.close()

    def _embed_batch(self, texts: list[str]) -> EmbeddingResult:
        """Embed texts in one request, or in several if the server rejects that."""
        try:
            return self._request(texts)
        except _TooLargeError as rejection:
            if len(texts) > 1:
                return self._embed_halves(texts)
            if len(texts[0]) < 2 * MIN_TEXT_CHARS:
                raise rejection.error from None
            return self._embed_batch([texts[0][: len(texts[0]) // 2]])

    def _embed_halves(self, texts: list[str]) -> EmbeddingResult:
        half = (len(texts) + 1) // 2
        first = self._embed_batch(texts[:half])
        self._batch_texts = max(1, min(self._batch_texts, half))  # only after a success: it may be another error
        second = self._embed_batch(texts[half:])
        vectors = lazy.numpy.concatenate([first.vectors, second.vectors])
        return EmbeddingResult(vectors, first.tokens + second.tokens)

    def _request(self, texts: list[str]) -> EmbeddingResult:
        try:
            body = self._service.post("/embeddings", {"model": self._model, "input": texts})
        except RequestRejectedError as rejection:
            raise _TooLargeError(rejection.error) from None
        except FailedPreconditionError as error:
            if error.details.get("status") == TOO_LARGE:
                raise _TooLargeError(error) from None
            raise
        vectors = self._vectors(body, len(texts))
        try:
            tokens = int((body.get("usage") or {}).get("total_tokens") or 0)
        except (AttributeError, OverflowError, TypeError, ValueError):
            tokens = 0
        return EmbeddingResult(vectors, tokens if 0 <= tokens <= MAX_TOKENS else 0)

    def _vectors(self, body: dict[str, Any], count: int) -> Any:
        """The vectors of a response, in the order of the texts."""
        np = lazy.numpy
        try:
            data = body["data"]
            rows = {int(row.get("index", position)): row["embedding"] for position, row in enumerate(data)}
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            raise unavailable(f"{self._service} answered without vectors", reason="no answer") from None
        if rows.keys() != set(range(count)) or len(data) != count:
            raise unavailable(
                f"{self._service} answered with {len(data)} vectors for {count} texts", reason="no answer"
            )
        try:
            with np.errstate(over="ignore"):
                vectors = np.array([rows[row] for row in range(count)], dtype=np.float32)
        except (OverflowError, TypeError, ValueError):
            raise unavailable(
                f"{self._service} answered with vectors that are not lists of numbers of one length", reason="no answer"
            ) from None
        if not np.isfinite(vectors).all():
            raise unavailable(f"{self._service} answered with a number that is not finite", reason="no answer")
        self._require_dimensions(vectors.shape[1] if vectors.ndim == 2 else 0)  # noqa: PLR2004 - a matrix
        return vectors

    def _require_dimensions(self, found: int) -> None:
        """Remember the length of the first vectors, and raise an error for others."""
        with self._lock:
            if found and self._dimensions in {0, found}:
                self._dimensions = found
                return
        before = f"{self._dimensions} as before; if the server has another model, restart and run holdfast reembed"
        expected = before if self._dimensions else "one or more"
        raise unavailable(
            f"{self._service} answered with vectors of {found} dimensions, not {expected}", reason="no answer"
        )


class _TooLargeError(Exception):
    """The server rejected the request, perhaps because it has too many or too long texts."""

    def __init__(self, error: HoldfastError) -> None:
        super().__init__(error.message)
        self.error = error
