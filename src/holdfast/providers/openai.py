"""Whatever speaks the OpenAI protocol: OpenAI itself, gateways, and servers of one's own."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from holdfast import lazy
from holdfast.model.summaries import Prompt, Reply, TokenUsage
from holdfast.providers.base import Embedded, NonNegative, unavailable
from holdfast.providers.http_service import HttpService, Refused

URL = "https://api.openai.com/v1"
FORMATS = ("json_schema", "json_object", "text")
BOUNDS = ("max_tokens", "max_completion_tokens")
BATCH = 128
MAX_TEXT_CHARS = 5_000
"""In characters. Longer texts are refused by models that read 8,192 tokens, and their vectors say little."""


class _TokenDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: NonNegative = 0
    completion_tokens: NonNegative = 0
    total_tokens: NonNegative = 0
    prompt_tokens_details: _TokenDetails | None = None
    completion_tokens_details: _TokenDetails | None = None


class OpenAIChat:
    """A model behind `POST {base_url}/chat/completions`.

    Not every server knows every way to ask for JSON, nor the same word for the bound of an answer. What a server
    refuses is asked otherwise, and the way that worked is asked first from then on.
    """

    def __init__(self, model: str, *, base_url: str = URL, api_key: str | None = None, timeout: float = 120.0) -> None:
        self._model = model
        self._service = HttpService(base_url, api_key, bearer(api_key), timeout)
        self._way = ("json_schema", "max_tokens")

    def __repr__(self) -> str:
        return f"OpenAIChat({self._model!r}, {self._service})"

    @property
    def name(self) -> str:
        return f"openai/{self._model}"

    def complete(self, prompt: Prompt) -> Reply:
        refused: Refused | None = None
        tried: list[tuple[str, str]] = []
        for way in self._ways(prompt):
            if refused and not _other_way_may_help(refused, tried[-1], way):
                continue
            try:
                answer = self._service.post("/chat/completions", request(self._model, prompt, *way))
            except Refused as one:
                refused = one
                tried.append(way)
            else:
                if prompt.schema or way[1] != self._way[1]:
                    self._way = way if prompt.schema else (self._way[0], way[1])
                return self._reply(answer)
        assert refused is not None  # noqa: S101 - there is always a way to try
        raise refused.error from None

    def close(self) -> None:
        self._service.close()

    def _ways(self, prompt: Prompt) -> Iterator[tuple[str, str]]:
        known, bound = self._way
        formats = FORMATS[FORMATS.index(known) :] if prompt.schema else ("text",)
        bounds = (bound, *(other for other in BOUNDS if other != bound))
        return ((one, other) for one in formats for other in bounds)

    def _reply(self, answer: dict[str, Any]) -> Reply:
        try:
            choice = answer["choices"][0]
            text = _joined(choice["message"].get("content"))
        except (KeyError, IndexError, TypeError, AttributeError):
            raise unavailable(f"{self._service} answered without a choice", reason="no answer") from None
        return Reply(text=text, usage=_usage(answer.get("usage")), complete=choice.get("finish_reason") != "length")


class OpenAIEmbedder:
    """A model behind `POST {base_url}/embeddings`."""

    def __init__(self, model: str, *, base_url: str = URL, api_key: str | None = None, timeout: float = 120.0) -> None:
        self._model = model
        self._service = HttpService(base_url, api_key, bearer(api_key), timeout)
        self._dimensions = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._model!r}, {self._service})"

    @property
    def name(self) -> str:
        return f"openai/{self._model}"

    @property
    def space(self) -> str:
        return self.name

    @property
    def dimensions(self) -> int:
        """As the server tells: the first who wants to know asks it."""
        with self._lock:
            if not self._dimensions:
                self._dimensions = len(self._ask(["dimensions"])[0][0])
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Embedded:
        np = lazy.numpy
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        tokens = 0
        said = [at for at, text in enumerate(texts) if text.strip()]  # an empty text is refused by some servers
        for start in range(0, len(said), BATCH):
            batch = said[start : start + BATCH]
            answer, cost = self._ask([texts[at][:MAX_TEXT_CHARS] for at in batch])
            tokens += cost
            rows = np.asarray(answer, dtype=np.float32)
            if rows.shape != (len(batch), self.dimensions):
                raise unavailable(f"{self._service} answered with vectors of another shape", reason="no answer")
            vectors[batch] = rows
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return Embedded(vectors, tokens)

    def close(self) -> None:
        self._service.close()

    def _ask(self, texts: list[str]) -> tuple[list[list[float]], int]:
        try:
            answer = self._service.post("/embeddings", {"model": self._model, "input": texts})
            data = sorted(answer["data"], key=lambda row: row["index"])
            rows: list[list[float]] = [row["embedding"] for row in data]
            tokens = int((answer.get("usage") or {}).get("total_tokens") or 0)
        except Refused as refused:
            raise refused.error from None
        except (KeyError, TypeError, ValueError):
            raise unavailable(f"{self._service} answered without vectors", reason="no answer") from None
        if len(rows) != len(texts):
            raise unavailable(f"{self._service} left out {len(texts) - len(rows)} vectors", reason="no answer")
        return rows, tokens


def bearer(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def request(model: str, prompt: Prompt, format: str, bound: str) -> dict[str, Any]:
    """The body of a request. Where the server cannot take the schema, the model is told of it in words."""
    body: dict[str, Any] = {"model": model, bound: prompt.max_tokens}
    system = prompt.system
    if prompt.schema and format == "json_schema":
        named = {"name": prompt.schema_name, "schema": prompt.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    elif prompt.schema:
        system = in_words(prompt)
        if format == "json_object":
            body["response_format"] = {"type": "json_object"}
    body["messages"] = [{"role": "system", "content": system}, {"role": "user", "content": prompt.user}]
    return body


def in_words(prompt: Prompt) -> str:
    """The system prompt with the schema in it, for those who cannot be held to one."""
    schema = msgspec.json.encode(prompt.schema).decode()
    return f"{prompt.system}\n\nAnswer with one JSON object and nothing else. It must fit this JSON schema:\n{schema}"


def _other_way_may_help(refused: Refused, tried: tuple[str, str], way: tuple[str, str]) -> bool:
    """Another word for the bound only if the server spoke of it; else another format."""
    if refused.mentions(tried[1]):
        return way[1] != tried[1]
    return way[0] != tried[0] and way[1] == tried[1]


def _joined(content: Any) -> str:
    """Text as it is, or the text parts of an answer in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _usage(told: Any) -> TokenUsage:
    try:
        usage = msgspec.convert(told, _Usage, strict=False)
    except msgspec.ValidationError:
        return TokenUsage()
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    return TokenUsage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens or usage.prompt_tokens + usage.completion_tokens,
        cached_tokens=(prompt and prompt.cached_tokens) or 0,
        reasoning_tokens=(completion and completion.reasoning_tokens) or 0,
    )
