"""Models behind Anthropic's Messages API, and servers that are compatible with it."""

from typing import Any

import msgspec

from holdfast.model.base import TokenCount
from holdfast.model.summaries import Prompt, Reply, TokenUsage
from holdfast.providers.base import unavailable
from holdfast.providers.http_service import HttpService, RequestRejectedError
from holdfast.providers.openai import system_prompt_with_schema

URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
JSON_MODES = ("output_format", "tool", "prompt")
"""How JSON is requested: as an output format with a schema, as the input of a forced tool call, or in the prompt."""


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: TokenCount | None = None
    output_tokens: TokenCount | None = None
    cache_creation_input_tokens: TokenCount | None = None
    cache_read_input_tokens: TokenCount | None = None


# msgspec prepares a type at its first use, and crashes the process if another thread uses the type meanwhile.
msgspec.json.Decoder(_Usage)


class AnthropicChat:
    """A model behind `POST {base_url}/v1/messages`. A JSON mode that the server rejects is not tried again."""

    def __init__(self, model: str, *, base_url: str = URL, api_key: str | None = None, timeout: float = 120.0) -> None:
        self._model = model
        headers = {"anthropic-version": VERSION} | ({"x-api-key": api_key} if api_key else {})
        self._service = HttpService(base_url.rstrip("/").removesuffix("/v1"), api_key, headers, timeout)
        self._json_mode = JSON_MODES[0]

    def __repr__(self) -> str:
        return f"AnthropicChat({self._model!r}, {self._service})"

    @property
    def name(self) -> str:
        return f"anthropic/{self._model}"

    def complete(self, prompt: Prompt) -> Reply:
        rejection: RequestRejectedError | None = None
        for json_mode in JSON_MODES[JSON_MODES.index(self._json_mode) :] if prompt.schema else ("prompt",):
            try:
                body = self._service.post("/v1/messages", request_body(self._model, prompt, json_mode))
            except RequestRejectedError as error:
                rejection = error
            else:
                self._json_mode = json_mode if prompt.schema else self._json_mode
                return self._reply(body)
        assert rejection is not None  # noqa: S101 - there is always at least one mode
        raise rejection.error from None

    def close(self) -> None:
        self._service.close()

    def _reply(self, body: dict[str, Any]) -> Reply:
        content = body.get("content")
        if not isinstance(content, list):
            raise unavailable(f"{self._service} answered without content", reason="no answer")
        blocks = [block for block in content if isinstance(block, dict)]
        tool_inputs = [block["input"] for block in blocks if block.get("type") == "tool_use" and "input" in block]
        text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
        return Reply(
            text=msgspec.json.encode(tool_inputs[0]).decode() if tool_inputs else text,
            usage=_usage(body.get("usage")),
            complete=body.get("stop_reason") != "max_tokens",
        )


def request_body(model: str, prompt: Prompt, json_mode: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": prompt.max_tokens,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
    }
    if prompt.schema is None:
        return body
    match json_mode:
        case "output_format":
            body["output_config"] = {"format": {"type": "json_schema", "schema": prompt.schema}}
        case "tool":
            body["tools"] = [{"name": prompt.schema_name, "description": "Answer.", "input_schema": prompt.schema}]
            body["tool_choice"] = {"type": "tool", "name": prompt.schema_name}
        case _:
            body["system"] = system_prompt_with_schema(prompt)
    return body


def _usage(reported: Any) -> TokenUsage:
    try:
        usage = msgspec.convert(reported, _Usage, strict=False)
    except msgspec.ValidationError:
        return TokenUsage()
    cached = usage.cache_read_input_tokens or 0
    # Anthropic's `input_tokens` does not include cached tokens.
    prompt = (usage.input_tokens or 0) + (usage.cache_creation_input_tokens or 0) + cached
    completion = usage.output_tokens or 0
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        cached_tokens=cached,
    )
