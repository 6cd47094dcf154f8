"""Work that goes on after its caller was answered."""

from datetime import datetime
from typing import Any, Literal

from holdfast.model.base import WireStruct
from holdfast.model.sessions import NonNegative
from holdfast.model.summaries import EmbeddingUsage, TokenUsage

TaskStatus = Literal["pending", "running", "completed", "failed", "cancelled"]
TaskKind = Literal["session_commit"]


class TotalUsage(WireStruct, frozen=True):
    total_tokens: int = 0


class CommitUsage(WireStruct, frozen=True):
    """What one commit cost."""

    llm: TokenUsage
    embedding: EmbeddingUsage
    total: TotalUsage


class CommitOutcome(WireStruct, frozen=True, kw_only=True):
    """What a finished commit did. Counts are for this commit."""

    session_id: str
    archive_uri: str
    memories_extracted: dict[str, int]
    active_count_updated: int
    """How many contexts and skills were of use since the commit before."""
    token_usage: CommitUsage
    memory_diff_uri: str
    summarised_by: str
    """The model that wrote the summary, or `local`."""
    notes: list[str]
    """What did not go as it should have, and what was done about it."""


class Progress(WireStruct, frozen=True):
    done: NonNegative
    total: NonNegative


class Task(WireStruct, frozen=True, kw_only=True):
    task_id: str
    account_id: str
    user_id: str
    task_type: TaskKind
    status: TaskStatus
    created_at: float
    updated_at: float
    processing_seconds: float
    resource_id: str
    stage: str | None
    """What it is at: a step of its work, `waiting` for the archive before it, or `retrying` later."""
    progress: Progress
    attempts: int
    next_attempt_at: datetime | None
    result: dict[str, Any] | None
    error_code: str | None
    error: str | None
    archive_uri: str
    created_at_iso: datetime
    updated_at_iso: datetime
