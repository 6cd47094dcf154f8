"""The fields of a provider's message that one of Holdfast's does not have, and where each of them goes."""

from typing import Any, Literal

import msgspec

from holdfast.model.messages import NewMessage, Role
from holdfast.validation import prebuild_decoder

AnyRole = Literal["user", "assistant", "system", "developer", "tool", "function"]
ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
PROVIDER_FIELDS = "provider_fields"
"""The key of a message's metadata that holds what its provider says of it beside its content, such as its `status`."""


@prebuild_decoder
class ProviderFields(msgspec.Struct, frozen=True, kw_only=True):
    """What a message of OpenAI, of a server that is compatible with it, or of Anthropic may have."""

    role: AnyRole
    content: str | list[Any] | dict[str, Any] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    function_call: dict[str, Any] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    thinking: Any = None
    thinking_blocks: Any = None
    audio: Any = None
    images: Any = None
    annotations: Any = None
    citations: Any = None
    extra_content: Any = None
    provider_specific_fields: Any = None


BEFORE_CONTENT = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks")
"""Fields that become provider parts: what the model thought comes first, the rest last."""
AFTER_CONTENT = ("audio", "images", "annotations", "citations", "extra_content", "provider_specific_fields")

OWN = frozenset(NewMessage.__struct_fields__)
SHARED = frozenset({"role", "content", "parts"})
KNOWN = OWN | frozenset(ProviderFields.__struct_fields__)


def is_nothing(value: Any) -> bool:
    """Whether a field holds nothing that could be lost: providers write null or an empty list where nothing is."""
    return value is None or (isinstance(value, str | list | dict) and not value)
