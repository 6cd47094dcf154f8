"""A service that ranks texts by their relevance to a query, behind the common `/rerank` endpoint."""

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.errors import HoldfastError, InvalidArgumentError
from holdfast.providers.base import unavailable
from holdfast.providers.http_service import HttpService, RequestRejectedError, authorization_header

MAX_TEXTS = 1_000
MAX_TEXT_CHARS = 5_000
"""Longer texts and queries are truncated: a service reads only the beginning of a text, or rejects it."""


class RankedText(NamedTuple):
    position: int
    """Among the texts that were sent, from 0."""
    score: float
    """Higher is more relevant. The scale is the model's own; many use 0 to 1."""


class Reranker:
    """A model behind `POST {base_url}/rerank`, as Jina, Cohere, vLLM, llama.cpp and Text Embeddings Inference have it.

    The last one has another name for the texts. It is tried if a server rejects the usual one, and remembered.
    It can be called from any thread, and raises the same errors as a `ChatModel`.
    """

    def __init__(
        self, base_url: str, *, model: str | None = None, api_key: str | None = None, timeout: float = 120.0
    ) -> None:
        self._model = model
        self._service = HttpService(base_url, api_key, authorization_header(api_key), timeout, "rerank")
        self._texts_field = "documents"

    def __repr__(self) -> str:
        return f"Reranker({self._model!r}, {self._service})"

    @property
    def name(self) -> str:
        return f"rerank/{self._model or self._service}"

    def rerank(self, query: str, texts: Sequence[str], top_n: int | None = None) -> list[RankedText]:
        """The `top_n` most relevant texts, by default all, best first. Texts with equal scores keep their order."""
        if len(texts) > MAX_TEXTS:
            raise InvalidArgumentError("texts", f"has {len(texts)} texts; a service ranks at most {MAX_TEXTS}")
        count = len(texts) if top_n is None else min(top_n, len(texts))
        if count <= 0:
            return []
        body: dict[str, Any] = {"query": query[:MAX_TEXT_CHARS], "top_n": count}
        if self._model:
            body["model"] = self._model
        answer = self._send(body, [text[:MAX_TEXT_CHARS] for text in texts])
        ranked = sorted(self._parse(answer, len(texts)), key=lambda ranked: (-ranked.score, ranked.position))
        return ranked[:count]

    def close(self) -> None:
        self._service.close()

    def _send(self, body: dict[str, Any], texts: list[str]) -> Any:
        rejection: HoldfastError | None = None
        for field in sorted(("documents", "texts"), key=lambda field: field != self._texts_field):
            try:
                answer = self._service.post_for_json("/rerank", {**body, field: texts})
            except RequestRejectedError as error:
                rejection = rejection or error.error
            else:
                self._texts_field = field
                return answer
        assert rejection is not None  # noqa: S101 - both fields were rejected
        raise rejection from None

    def _parse(self, answer: Any, count: int) -> list[RankedText]:
        results = answer.get("results", answer.get("data")) if isinstance(answer, dict) else answer
        if not isinstance(results, list):
            raise unavailable(f"{self._service} answered without a list of results", reason="no answer")
        ranked: dict[int, float] = {}
        for result in results:
            index, score = _index_and_score(result)
            if index is None or score is None:
                raise unavailable(
                    f"{self._service} answered with a result that has no index or no finite score", reason="no answer"
                )
            if not 0 <= index < count:
                raise unavailable(
                    f"{self._service} answered with the index {index}, but {count} texts were sent", reason="no answer"
                )
            if index in ranked:
                raise unavailable(f"{self._service} answered with the index {index} twice", reason="no answer")
            ranked[index] = score
        return [RankedText(index, score) for index, score in ranked.items()]


def _index_and_score(result: Any) -> tuple[int | None, float | None]:
    if not isinstance(result, dict):
        return None, None
    index = result.get("index")
    score = result.get("relevance_score", result.get("score"))
    if isinstance(index, bool) or not isinstance(index, int) or abs(index) > sys.maxsize:
        index = None
    return index, _finite(score)


def _finite(score: Any) -> float | None:
    if isinstance(score, bool) or not isinstance(score, int | float):
        return None
    try:
        return score if math.isfinite(score) else None
    except OverflowError:  # an integer that is too large
        return None
