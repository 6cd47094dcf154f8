"""Models and embedders behind the OpenAI API: OpenAI itself, gateways and self-hosted servers."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast import lazy
from holdfast.model.base import TokenCount
from holdfast.model.summaries import Prompt, Reply, TokenUsage
from holdfast.providers.base import EmbeddingResult, unavailable
from holdfast.providers.http_service import HttpService, RequestRejectedError

URL = "https://api.openai.com/v1"
RESPONSE_FORMATS = ("json_schema", "json_object", "text")
TOKEN_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")
BATCH_SIZE = 128
MAX_TEXT_CHARS = 5_000
"""Longer texts are truncated: models with a limit of 8,192 tokens reject them, and their vectors are less specific."""


class _TokenDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: TokenCount = 0
    completion_tokens: TokenCount = 0
    total_tokens: TokenCount = 0
    prompt_tokens_details: _TokenDetails | None = None
    completion_tokens_details: _TokenDetails | None = None


# msgspec prepares a type at its first use, and crashes the process if another thread uses the type meanwhile.
msgspec.json.Decoder(_Usage)


class RequestVariant(NamedTuple):
    """How a request asks for JSON, and which field limits the length of the response."""

    response_format: str
    token_limit_field: str


class OpenAIChat:
    """A model behind `POST {base_url}/chat/completions`.

    Servers differ in the response formats that they support and in the field that limits the response. If a server
    rejects a request, other variants are tried. The variant that worked is tried first from then on.
    """

    def __init__(self, model: str, *, base_url: str = URL, api_key: str | None = None, timeout: float = 120.0) -> None:
        self._model = model
        self._service = HttpService(base_url, api_key, authorization_header(api_key), timeout)
        self._variant = RequestVariant("json_schema", "max_tokens")

    def __repr__(self) -> str:
        return f"OpenAIChat({self._model!r}, {self._service})"

    @property
    def name(self) -> str:
        return f"openai/{self._model}"

    def complete(self, prompt: Prompt) -> Reply:
        rejection: RequestRejectedError | None = None
        rejected: list[RequestVariant] = []
        for variant in self._variants(prompt):
            if rejection and not _may_help(rejection, rejected[-1], variant):
                continue
            try:
                body = self._service.post("/chat/completions", request_body(self._model, prompt, variant))
            except RequestRejectedError as error:
                rejection = error
                rejected.append(variant)
            else:
                self._remember(variant, prompt)
                return self._reply(body)
        assert rejection is not None  # noqa: S101 - there is always at least one variant
        raise rejection.error from None

    def close(self) -> None:
        self._service.close()

    def _variants(self, prompt: Prompt) -> Iterator[RequestVariant]:
        """The variants to try, beginning with the one that worked last."""
        last_format, last_field = self._variant
        formats = RESPONSE_FORMATS[RESPONSE_FORMATS.index(last_format) :] if prompt.schema else ("text",)
        fields = (last_field, *(field for field in TOKEN_LIMIT_FIELDS if field != last_field))
        return (RequestVariant(format_, field) for format_ in formats for field in fields)

    def _remember(self, variant: RequestVariant, prompt: Prompt) -> None:
        """Try this variant first from now on. A prompt without a schema says nothing about response formats."""
        if prompt.schema:
            self._variant = variant
        elif variant.token_limit_field != self._variant.token_limit_field:
            self._variant = RequestVariant(self._variant.response_format, variant.token_limit_field)

    def _reply(self, body: dict[str, Any]) -> Reply:
        try:
            choice = body["choices"][0]
            text = _content_text(choice["message"].get("content"))
        except (KeyError, IndexError, TypeError, AttributeError):
            raise unavailable(f"{self._service} answered without a choice", reason="no answer") from None
        return Reply(text=text, usage=_usage(body.get("usage")), complete=choice.get("finish_reason") != "length")


class OpenAIEmbedder:
    """A model behind `POST {base_url}/embeddings`."""

    def __init__(self, model: str, *, base_url: str = URL, api_key: str | None = None, timeout: float = 120.0) -> None:
        self._model = model
        self._service = HttpService(base_url, api_key, authorization_header(api_key), timeout)
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
        """The length of the server's vectors. The first access sends a request."""
        with self._lock:
            if not self._dimensions:
                self._dimensions = len(self._request(["dimensions"])[0][0])
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> EmbeddingResult:
        np = lazy.numpy
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        tokens = 0
        with_content = [row for row, text in enumerate(texts) if text.strip()]  # some servers reject an empty text
        for start in range(0, len(with_content), BATCH_SIZE):
            batch = with_content[start : start + BATCH_SIZE]
            embeddings, batch_tokens = self._request([texts[row][:MAX_TEXT_CHARS] for row in batch])
            tokens += batch_tokens
            rows = np.asarray(embeddings, dtype=np.float32)
            if rows.shape != (len(batch), self.dimensions):
                raise unavailable(f"{self._service} answered with vectors of another shape", reason="no answer")
            vectors[batch] = rows
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return EmbeddingResult(vectors, tokens)

    def close(self) -> None:
        self._service.close()

    def _request(self, texts: list[str]) -> tuple[list[list[float]], int]:
        """The vectors of the texts, and the number of tokens that the provider counted."""
        try:
            body = self._service.post("/embeddings", {"model": self._model, "input": texts})
            data = sorted(body["data"], key=lambda row: row["index"])
            rows: list[list[float]] = [row["embedding"] for row in data]
            tokens = int((body.get("usage") or {}).get("total_tokens") or 0)
        except RequestRejectedError as rejection:
            raise rejection.error from None
        except (KeyError, TypeError, ValueError):
            raise unavailable(f"{self._service} answered without vectors", reason="no answer") from None
        if len(rows) != len(texts):
            raise unavailable(f"{self._service} left out {len(texts) - len(rows)} vectors", reason="no answer")
        return rows, tokens


def authorization_header(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def request_body(model: str, prompt: Prompt, variant: RequestVariant) -> dict[str, Any]:
    """The body of a chat request. If the variant has no field for the schema, the schema is part of the prompt."""
    body: dict[str, Any] = {"model": model, variant.token_limit_field: prompt.max_tokens}
    system = prompt.system
    if prompt.schema and variant.response_format == "json_schema":
        schema = {"name": prompt.schema_name, "schema": prompt.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif prompt.schema:
        system = system_prompt_with_schema(prompt)
        if variant.response_format == "json_object":
            body["response_format"] = {"type": "json_object"}
    body["messages"] = [{"role": "system", "content": system}, {"role": "user", "content": prompt.user}]
    return body


def system_prompt_with_schema(prompt: Prompt) -> str:
    """The system prompt with the schema appended, for servers that cannot enforce a schema."""
    schema = msgspec.json.encode(prompt.schema).decode()
    return f"{prompt.system}\n\nAnswer with one JSON object and nothing else. It must fit this JSON schema:\n{schema}"


def _may_help(rejection: RequestRejectedError, rejected: RequestVariant, variant: RequestVariant) -> bool:
    """Whether to try `variant` after `rejected` failed.

    Another token limit field helps only if the server's message names the field; otherwise another format may help.
    """
    if rejection.mentions(rejected.token_limit_field):
        return variant.token_limit_field != rejected.token_limit_field
    return (
        variant.response_format != rejected.response_format and variant.token_limit_field == rejected.token_limit_field
    )


def _content_text(content: Any) -> str:
    """The text of a message whose content is a string or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _usage(reported: Any) -> TokenUsage:
    try:
        usage = msgspec.convert(reported, _Usage, strict=False)
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
