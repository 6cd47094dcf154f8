"""Sessions, their settings, the contexts and skills they used, and their events."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from holdfast.model.access import Right
from holdfast.model.base import NonNegative, WireStruct
from holdfast.model.identity import UserRef
from holdfast.model.messages import Message
from holdfast.model.summaries import EmbeddingUsage, TokenUsage

SessionState = Literal["active", "archived"]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
MemoryType = Literal[
    "profile",
    "preferences",
    "entities",
    "events",
    "cases",
    "patterns",
    "tools",
    "skills",
    "trajectories",
    "experiences",
]


class Switch(WireStruct, frozen=True, forbid_unknown_fields=True):
    enabled: bool = True


class MemoryPolicy(WireStruct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which types of memory may be extracted from a session, and whose. Without `memory_types`, all types."""

    self: Switch | None = None
    peer: Switch | None = None
    working_memory: Switch | None = None
    memory_types: list[MemoryType] | None = None


class AutoCommitPolicy(WireStruct, frozen=True, kw_only=True, omit_defaults=True):
    """When a session is committed automatically."""

    pending_token_threshold: NonNegative | None = None
    message_count_threshold: NonNegative | None = None
    idle_timeout_seconds: Seconds | None = None
    keep_recent_count: NonNegative | None = None
    min_commit_interval_seconds: Seconds | None = None


class SessionConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of one session."""

    memory_policy: MemoryPolicy | None = None
    auto_commit_policy: AutoCommitPolicy | None = None
    memory_extraction_config: dict[str, Any] | None = None


class Fork(WireStruct, frozen=True):
    """The origin of a forked session. It shares all messages up to `seq` with `session_id`."""

    session_id: str
    seq: int


class SessionInfo(WireStruct, frozen=True, kw_only=True):
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
    """The number of live messages, which are not sealed in an archive."""
    total_message_count: int
    pending_tokens: int
    """Estimated tokens of the live messages."""
    contexts_used: int
    skills_used: int
    forked_from: Fork | None
    commit_count: int
    """The number of finished commits."""
    last_commit: str = msgspec.field(name="last_commit_at")
    """The time of `last_commit_at` in the JSON form: an empty string before the first commit."""
    memories_extracted: dict[str, int]
    llm_token_usage: TokenUsage
    embedding_token_usage: EmbeddingUsage
    keep_recent_count: int
    memory_policy: MemoryPolicy | None
    auto_commit_policy: AutoCommitPolicy | None
    memory_extraction_config: dict[str, Any] | None
    owner: str
    """The owner as the address of the session names it: pass it as `owner` to reach a shared session."""
    rights: list[Right]
    """What the caller may do with the session. The owner has all rights."""

    @property
    def last_commit_at(self) -> datetime | None:
        """The time of the last commit, or None before the first one."""
        return datetime.fromisoformat(self.last_commit) if self.last_commit else None


class SessionRow(WireStruct, frozen=True, kw_only=True):
    """A session in a list of sessions."""

    session_id: str
    uri: str
    is_dir: bool = True
    mod_time: datetime
    created_at: datetime
    title: str
    state: SessionState
    message_count: int
    total_message_count: int
    owner: str
    """Pass it as `owner` to reach a shared session."""
    rights: list[Right]
    """What the caller may do with the session. The owner has all rights."""


class SessionPage(WireStruct, frozen=True):
    sessions: list[SessionRow]
    next_cursor: str | None


class SessionList(list[SessionRow]):
    """A page of sessions as a list, with the cursor of the next page."""

    def __init__(self, sessions: list[SessionRow], next_cursor: str | None) -> None:
        super().__init__(sessions)
        self.next_cursor = next_cursor


class SessionRef(WireStruct, frozen=True):
    session_id: str


class SkillUse(WireStruct, frozen=True):
    uri: Annotated[str, msgspec.Meta(max_length=2048)] = ""
    """The address of the skill. Empty if it has none, such as a skill of the application itself."""
    input: Any = None
    output: Any = None
    success: bool = True


class UseRecorded(WireStruct, frozen=True):
    session_id: str
    contexts_used: int
    skills_used: int


class Usage(WireStruct, frozen=True, kw_only=True):
    """One recorded use of a context or a skill."""

    id: str
    kind: Literal["context", "skill"]
    uri: str
    input: Any = None
    output: Any = None
    success: bool = True
    created_at: datetime


class Change(WireStruct, frozen=True, kw_only=True):
    """A change of a session other than a new message."""

    kind: Literal[
        "created",
        "updated",
        "configured",
        "used",
        "forked",
        "committed",
        "archived",
        "commit_failed",
        "commit_cancelled",
        "commit_retried",
        "resummarised",
        "shared",
        "unshared",
        "link_created",
        "link_revoked",
        "transferred",
        "deleted",
    ]
    at: datetime
    user_id: str
    data: dict[str, Any]


class Event(WireStruct, frozen=True, kw_only=True):
    """A message or a change of a session."""

    id: str
    """Pass it as `after` or `Last-Event-ID` to read the events after this one."""
    event: Literal["message", "session"]
    message: Message | None = None
    change: Change | None = None


class EventPage(WireStruct, frozen=True):
    events: list[Event]
    cursor: str
    """Pass it as `after` to read the next page."""
    has_more: bool = False
    """Whether there are more events now. A page ends at `limit` or at the size limit of a response."""


def session_uri(owner_id: str, session_id: str) -> str:
    return f"viking://user/{owner_id}/sessions/{session_id}"
