"""The health of the system, and statistics."""

from datetime import datetime
from typing import Literal

from holdfast.model.base import WireStruct

ComponentName = Literal["storage", "queue", "vikingdb", "models", "lock", "retrieval", "filesystem"]


class SystemStatus(WireStruct, frozen=True):
    initialized: bool
    user: str


class Health(WireStruct, frozen=True):
    healthy: bool


class QueueCounts(WireStruct, frozen=True):
    pending: int
    in_progress: int = 0
    failed: int = 0


class Component(WireStruct, frozen=True, kw_only=True):
    name: str
    is_healthy: bool
    has_errors: bool
    status: str


class SystemHealth(WireStruct, frozen=True, kw_only=True):
    is_healthy: bool
    errors: list[str]
    components: dict[str, Component]


class MemoryStats(WireStruct, frozen=True, kw_only=True):
    """The number of sessions, messages, tokens and memories of a user."""

    sessions: int
    messages: int
    tokens: int
    total_memories: int
    by_category: dict[str, int]


class SessionStats(WireStruct, frozen=True, kw_only=True):
    session_id: str
    messages: int
    live_messages: int
    messages_by_role: dict[str, int]
    tokens: int
    pending_tokens: int
    tool_results: int
    contexts_used: int
    skills_used: int
    first_message_at: datetime | None
    last_message_at: datetime | None


class Backup(WireStruct, frozen=True, kw_only=True):
    """A backup that was written and checked."""

    file: str
    bytes: int
    damaged_rows: int
    """More than 0 only if damage was allowed."""


class Restored(WireStruct, frozen=True, kw_only=True):
    """A database that was restored from a backup."""

    file: str
    bytes: int
    damaged_rows: int
    previous_file: str | None
    """Where the replaced database is now."""
