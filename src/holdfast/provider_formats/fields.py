"""The fields that only messages of a provider have, and how each of them is translated."""

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
"""The key of a message's metadata for the provider's other fields, such as `status`."""


@prebuild_decoder
class ProviderFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a message of OpenAI, of an OpenAI-compatible server, or of Anthropic."""

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
"""Fields that become provider parts before the content: the reasoning of the model."""
AFTER_CONTENT = ("audio", "images", "annotations", "citations", "extra_content", "provider_specific_fields")

OWN_FIELDS = frozenset(NewMessage.__struct_fields__)
"""Fields of Holdfast's messages."""
SHARED_FIELDS = frozenset({"role", "content", "parts"})
KNOWN_FIELDS = OWN_FIELDS | frozenset(ProviderFields.__struct_fields__)


def is_empty(value: Any) -> bool:
    """Return whether a field holds no data. Providers write null or an empty list for a missing value."""
    return value is None or (isinstance(value, str | list | dict) and not value)
