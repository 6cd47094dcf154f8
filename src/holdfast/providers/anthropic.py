"""The Messages API of Anthropic, and servers that speak it."""

from typing import Any

import msgspec

from holdfast.model.summaries import Prompt, Reply, TokenUsage
from holdfast.providers.base import NonNegative, unavailable
from holdfast.providers.http_service import HttpService, Refused
from holdfast.providers.openai import in_words

URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
WAYS = ("format", "tool", "words")
"""How JSON is asked for: held to the schema, as the input of a tool it has to call, or in words."""


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: NonNegative | None = None
    output_tokens: NonNegative | None = None
    cache_creation_input_tokens: NonNegative | None = None
    cache_read_input_tokens: NonNegative | None = None


class AnthropicChat:
    """A model behind `POST {base_url}/v1/messages`. A way to ask for JSON that it refuses is not tried again."""

    def __init__(self, model: str, *, base_url: str = URL, api_key: str | None = None, timeout: float = 120.0) -> None:
        self._model = model
        headers = {"anthropic-version": VERSION} | ({"x-api-key": api_key} if api_key else {})
        self._service = HttpService(base_url.rstrip("/").removesuffix("/v1"), api_key, headers, timeout)
        self._way = WAYS[0]

    def __repr__(self) -> str:
        return f"AnthropicChat({self._model!r}, {self._service})"

    @property
    def name(self) -> str:
        return f"anthropic/{self._model}"

    def complete(self, prompt: Prompt) -> Reply:
        refused: Refused | None = None
        for way in WAYS[WAYS.index(self._way) :] if prompt.schema else ("words",):
            try:
                answer = self._service.post("/v1/messages", request(self._model, prompt, way))
            except Refused as one:
                refused = one
            else:
                self._way = way if prompt.schema else self._way
                return self._reply(answer)
        assert refused is not None  # noqa: S101 - there is always a way to try
        raise refused.error from None

    def close(self) -> None:
        self._service.close()

    def _reply(self, answer: dict[str, Any]) -> Reply:
        blocks = answer.get("content")
        if not isinstance(blocks, list):
            raise unavailable(f"{self._service} answered without content", reason="no answer")
        said = [block for block in blocks if isinstance(block, dict)]
        called = [block["input"] for block in said if block.get("type") == "tool_use" and "input" in block]
        text = "".join(str(block.get("text", "")) for block in said if block.get("type") == "text")
        return Reply(
            text=msgspec.json.encode(called[0]).decode() if called else text,
            usage=_usage(answer.get("usage")),
            complete=answer.get("stop_reason") != "max_tokens",
        )


def request(model: str, prompt: Prompt, way: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": prompt.max_tokens,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
    }
    if prompt.schema is None:
        return body
    match way:
        case "format":
            body["output_config"] = {"format": {"type": "json_schema", "schema": prompt.schema}}
        case "tool":
            body["tools"] = [{"name": prompt.schema_name, "description": "Answer.", "input_schema": prompt.schema}]
            body["tool_choice"] = {"type": "tool", "name": prompt.schema_name}
        case _:
            body["system"] = in_words(prompt)
    return body


def _usage(told: Any) -> TokenUsage:
    try:
        usage = msgspec.convert(told, _Usage, strict=False)
    except msgspec.ValidationError:
        return TokenUsage()
    cached = usage.cache_read_input_tokens or 0
    prompt = (usage.input_tokens or 0) + (usage.cache_creation_input_tokens or 0) + cached  # it counts them apart
    completion = usage.output_tokens or 0
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        cached_tokens=cached,
    )
