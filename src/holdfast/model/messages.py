"""Messages, and tool outputs that are too large for a message."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from holdfast.model.base import Name, WireStruct
from holdfast.model.parts import Part, ProviderPart, TextPart

Role = Literal["user", "assistant", "system", "tool"]
Timestamp = Annotated[datetime, msgspec.Meta(description="use ISO 8601, such as 2026-03-24T09:10:11Z")]

_GENERATED_ID = re.compile("msg_[0-9a-f]{32}")


class NewMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message to append. It needs `content` or `parts`; if both are given, `parts` is used.

    `holdfast.provider_formats` translates messages of OpenAI and Anthropic, which have other fields.
    """

    role: Role
    content: str | None = None
    parts: list[Any] | None = None
    id: Name | None = None
    peer_id: Name | None = None
    turn_id: str | None = None
    message_kind: str | None = None
    source_message_ids: list[str] | None = None
    created_at: Timestamp | None = None
    metadata: dict[str, Any] | None = None


class Message(WireStruct, frozen=True, omit_defaults=True, gc=False):
    id: str
    role: Role
    parts: list[Part]
    created_at: datetime
    seq: int
    tokens: int
    peer_id: str | None = None
    turn_id: str | None = None
    message_kind: str | None = None
    source_message_ids: list[str] | None = None
    metadata: dict[str, Any] | None = None
    damaged: bool = False
    """The stored message is damaged or missing. Its only part is a text that says so."""
    author: str | None = None
    """The user who added it. None if that was the owner of the session at that time."""
    agent_id: str | None = None
    """The agent of that user. None for the default agent."""

    @property
    def text(self) -> str:
        """The texts of text parts and of provider parts with citations, joined by newlines."""
        return "\n".join(
            [
                part.text
                for part in self.parts
                if isinstance(part, TextPart) or (isinstance(part, ProviderPart) and part.text)
            ]
        )


class MessagePage(WireStruct, frozen=True):
    session_id: str
    messages: list[Message]
    next_seq: int | None
    """The first message of the next page, or None at the end of the range."""


class TelemetrySummary(WireStruct, frozen=True):
    operation: str
    status: str
    duration_ms: float


class Telemetry(WireStruct, frozen=True):
    """How long a call took."""

    id: str
    """The id of the request."""
    summary: TelemetrySummary


class Appended(WireStruct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of an append. A retry of the same append returns the same result."""

    session_id: str
    message_count: int
    pending_tokens: int
    added: int
    seq: int
    """The sequence number of the last message of this append."""
    message_ids: list[str]
    telemetry: Telemetry | None = None
    """If the call asked for it. A response has it beside the result."""

    @property
    def message_id(self) -> str:
        return self.message_ids[-1]


class ToolResult(WireStruct, frozen=True, kw_only=True):
    """A tool output that was too large for its message."""

    tool_result_id: str
    tool_id: str
    tool_name: str
    seq: int
    chars: int
    created_at: datetime


class ToolResultPage(WireStruct, frozen=True):
    tool_results: list[ToolResult]


class ToolResultSlice(WireStruct, frozen=True, kw_only=True):
    tool_result_id: str
    tool_name: str
    content: str
    offset: int
    chars: int
    """The length of the whole output."""
    has_more: bool


class TextMatch(WireStruct, frozen=True):
    offset: int
    context: str


class ToolResultMatches(WireStruct, frozen=True):
    tool_result_id: str
    matches: list[TextMatch]


def message_id(millis: int, seq: int, random_bits: int) -> str:
    """Return an id that sorts by time, then by sequence number, and contains the sequence number.

    >>> message_id(1_700_000_000_000, 7, 0xC0FFEE)
    'msg_018bcfe5680000000007000000c0ffee'
    """
    return f"msg_{millis:012x}{seq:08x}{random_bits:012x}"


def seq_from_id(id: str) -> int | None:
    """Return the sequence number in an id that `message_id` generated, or None for other ids.

    >>> seq_from_id("msg_018bcfe5680000000007000000c0ffee")
    7
    """
    return int(id[16:24], 16) if _GENERATED_ID.fullmatch(id) else None
