"""The health of the system, and statistics."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from holdfast.model.base import WireStruct

ComponentName = Literal["storage", "queue", "vikingdb", "models", "lock", "retrieval", "filesystem"]


class SystemStatus(WireStruct, frozen=True):
    initialized: bool
    user: str


class Health(WireStruct, frozen=True):
    healthy: bool


class QueueCounts(WireStruct, frozen=True):
    """What a queue has to do, and what it did. Of tasks that are done, the latest are counted."""

    pending: int = 0
    in_progress: int = 0
    failed: int = 0
    processed: int = 0
    requeue_count: int = 0
    """How often tasks were tried again."""
    error_count: int = 0
    """As `failed`, for clients that know it by this name."""
    errors: list[str] = msgspec.field(default_factory=list)
    """The errors of the tasks that failed last."""


class Component(WireStruct, frozen=True, kw_only=True):
    name: str
    is_healthy: bool
    has_errors: bool
    status: str | dict[str, Any]
    """A text with tables, or an object if the call asks for `json`."""
    summary: str
    """One line for people."""


class SystemHealth(WireStruct, frozen=True, kw_only=True):
    is_healthy: bool
    errors: list[str]
    components: dict[str, Component]


class Staleness(WireStruct, frozen=True):
    """How many memories were not used for some time."""

    not_accessed_7d: int = 0
    not_accessed_30d: int = 0
    oldest_memory_age_days: float = 0


class MemoryStats(WireStruct, frozen=True, kw_only=True):
    """The number of sessions, messages, tokens and memories of a user."""

    sessions: int
    messages: int
    tokens: int
    total_memories: int
    by_category: dict[str, int]
    hotness_distribution: dict[str, int]
    """The number of cold, warm and hot memories."""
    staleness: Staleness


class Consistency(WireStruct, frozen=True, kw_only=True):
    """Whether everything below an address can be found by a search already."""

    ok: bool
    expected_count: int
    """The number of messages there."""
    missing_record_count: int
    """How many of them are not indexed yet. A search reads them nevertheless."""
    missing_records: list[str]
    """The addresses of the sessions that have them."""
    missing_records_truncated: bool


class SessionStats(WireStruct, frozen=True, kw_only=True):
    session_id: str
    total_turns: int
    """The number of messages, under the name that other clients know."""
    memories_extracted: int
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
