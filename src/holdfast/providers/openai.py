"""Models behind the OpenAI API: OpenAI itself, gateways and self-hosted servers."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from holdfast.model.base import TokenCount
from holdfast.model.summaries import Prompt, Reply, TokenUsage
from holdfast.providers.base import unavailable
from holdfast.providers.http_service import HttpService, RequestRejectedError, authorization_header

URL = "https://api.openai.com/v1"
RESPONSE_FORMATS = ("json_schema", "json_object", "text")
TOKEN_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")


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
