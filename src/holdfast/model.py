"""The nouns, as frozen structs. They hold data and do nothing.

Attributes are typed (`info.created_at` is a datetime); reading a noun as a dictionary gives its wire form
(`info["created_at"]` is the ISO 8601 text), so code written against the HTTP documentation works on both.
"""

import re
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

import msgspec

from holdfast.errors import InvalidArgumentError
from holdfast.noun import Name, Noun, require_name
from holdfast.parts import Part, TextPart

Role = Literal["user", "assistant", "system", "tool"]
SessionState = Literal["active", "archived"]
AccessRole = Literal["user", "admin", "root"]


Timestamp = Annotated[datetime, msgspec.Meta(description="use ISO 8601, such as 2026-03-24T09:10:11Z")]


_MADE = re.compile("msg_[0-9a-f]{32}")


class Principal(msgspec.Struct, frozen=True):
    """Who calls. The account is the tenant; a user's sessions are private within it.

    It is checked when it is made, however it is made: its names go into URIs and its account into every WHERE.
    """

    account_id: str = "default"
    user_id: str = "default"
    role: AccessRole = "user"

    def __post_init__(self) -> None:
        require_name("account_id", self.account_id)
        require_name("user_id", self.user_id)
        if self.role not in get_args(AccessRole):
            raise InvalidArgumentError("role", f"{self.role!r} is not one of {', '.join(get_args(AccessRole))}")


class UserRef(Noun, frozen=True):
    account_id: str
    user_id: str


class NewMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as a caller hands it in. `parts` wins over `content`; one of them is needed."""

    role: Role
    content: str | None = None
    parts: list[Any] | None = None
    id: Name | None = None
    peer_id: str | None = None
    turn_id: str | None = None
    message_kind: str | None = None
    source_message_ids: list[str] | None = None
    created_at: Timestamp | None = None


class Message(Noun, frozen=True, omit_defaults=True, gc=False):
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

    @property
    def text(self) -> str:
        """The text parts, joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))


class MessagePage(Noun, frozen=True):
    session_id: str
    messages: list[Message]
    next_seq: int | None
    """Where the next page begins, or None at the end of the range."""


class Fork(Noun, frozen=True):
    """Where a session branched off: it shares everything up to `seq` with `session_id`."""

    session_id: str
    seq: int


class SessionInfo(Noun, frozen=True, kw_only=True):
    session_id: str
    uri: str
    user: UserRef
    title: str
    metadata: dict[str, Any]
    state: SessionState
    created_at: datetime
    updated_at: datetime
    last_message_at: datetime | None
    message_count: int
    """Live messages: those not sealed in an archive."""
    total_message_count: int
    pending_tokens: int
    """Estimated tokens of the live messages."""
    contexts_used: int
    skills_used: int
    forked_from: Fork | None


class SessionRow(Noun, frozen=True, kw_only=True):
    """One line of a listing."""

    session_id: str
    uri: str
    is_dir: bool = True
    mod_time: datetime
    created_at: datetime
    title: str
    state: SessionState
    message_count: int
    total_message_count: int


class SessionPage(Noun, frozen=True):
    sessions: list[SessionRow]
    next_cursor: str | None


class SessionList(list[SessionRow]):
    """A page of sessions as the plain list that callers loop over."""

    def __init__(self, sessions: list[SessionRow], next_cursor: str | None) -> None:
        super().__init__(sessions)
        self.next_cursor = next_cursor


class SessionRef(Noun, frozen=True):
    session_id: str


class Appended(Noun, frozen=True, kw_only=True):
    """What an append did. A retry of the same append answers the same."""

    session_id: str
    message_count: int
    pending_tokens: int
    added: int
    seq: int
    """The position of the last message of this append."""
    message_ids: list[str]

    @property
    def message_id(self) -> str:
        return self.message_ids[-1]


class SkillUse(Noun, frozen=True):
    uri: str
    input: Any = None
    output: Any = None
    success: bool = True


class UseRecorded(Noun, frozen=True):
    session_id: str
    contexts_used: int
    skills_used: int


class Usage(Noun, frozen=True, kw_only=True):
    """One recorded use of a context or a skill."""

    id: str
    kind: Literal["context", "skill"]
    uri: str
    input: Any = None
    output: Any = None
    success: bool = True
    created_at: datetime


class ToolResult(Noun, frozen=True, kw_only=True):
    """A tool output that was too large for its message."""

    tool_result_id: str
    tool_id: str
    tool_name: str
    seq: int
    chars: int
    created_at: datetime


class ToolResultPage(Noun, frozen=True):
    tool_results: list[ToolResult]


class ToolResultSlice(Noun, frozen=True, kw_only=True):
    tool_result_id: str
    tool_name: str
    content: str
    offset: int
    chars: int
    """The length of the whole output."""
    has_more: bool


class TextMatch(Noun, frozen=True):
    offset: int
    context: str


class ToolResultMatches(Noun, frozen=True):
    tool_result_id: str
    matches: list[TextMatch]


class Account(Noun, frozen=True):
    account_id: str
    created_at: datetime


class AuditRecord(Noun, frozen=True, kw_only=True):
    """Who did what to which resource; written in the transaction of the deed itself."""

    id: str
    at: datetime
    user_id: str
    role: AccessRole
    action: str
    resource: str


class AuditPage(Noun, frozen=True):
    records: list[AuditRecord]
    next_cursor: str | None


def message_id(millis: int, seq: int, chance: int) -> str:
    """An id that sorts by time, then by place in the session, and tells that place.

    >>> message_id(1_700_000_000_000, 7, 0xC0FFEE)
    'msg_018bcfe5680000000007000000c0ffee'
    """
    return f"msg_{millis:012x}{seq:08x}{chance:012x}"


def seq_told_by(id: str) -> int | None:
    """The place that an id made by `message_id` tells, or None if it was not made so.

    >>> seq_told_by("msg_018bcfe5680000000007000000c0ffee")
    7
    """
    return int(id[16:24], 16) if _MADE.fullmatch(id) else None


def session_uri(user_id: str, session_id: str) -> str:
    return f"viking://user/{user_id}/sessions/{session_id}"
