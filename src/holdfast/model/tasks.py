"""Background tasks."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from holdfast.model.base import NonNegative, WireStruct
from holdfast.model.summaries import EmbeddingUsage, TokenUsage
from holdfast.validation import prebuild_decoder

TaskStatus = Literal["pending", "running", "completed", "failed", "cancelled"]
COMMIT = "session_commit"
DELETION = "session_delete"
RESUMMARY = "resummarise"
BACKFILL = "backfill"
EMBEDDING = "embed"
REEMBEDDING = "reembed"
VECTOR_INDEX = "index_vectors"
INDEX = "index"
ADD_RESOURCE = "add_resource"
PROCESSING = "process"
REINDEXING = "reindex"


class TotalUsage(WireStruct, frozen=True):
    total_tokens: int = 0


class TaskUsage(WireStruct, frozen=True):
    """Tokens that one task used."""

    llm: TokenUsage
    embedding: EmbeddingUsage
    total: TotalUsage


class CommitOutcome(WireStruct, frozen=True, kw_only=True):
    """Result of a finished commit. Counts are for this commit only."""

    session_id: str
    archive_uri: str
    memories_extracted: dict[str, int]
    active_count_updated: int
    """Number of contexts and skills used since the previous commit."""
    token_usage: TaskUsage
    memory_diff_uri: str
    summarised_by: str
    """The model that wrote the summary, or `local`."""
    notes: list[str]
    """Problems during the commit, and how each was handled."""


@prebuild_decoder
class CommitPayload(msgspec.Struct, frozen=True):
    """What the task of a commit works on."""

    log_id: int
    number: int
    """The number of the archive."""


@prebuild_decoder
class SessionPayload(msgspec.Struct, frozen=True):
    """What a task on the whole session works on. The payload of a commit can also be decoded as this type."""

    log_id: int


class ResummaryOutcome(WireStruct, frozen=True, kw_only=True):
    """Result of a task that regenerated the summaries of a session."""

    session_id: str
    archives: int
    """The number of archives that were summarised."""
    summarised_by: list[str]
    """The models that wrote the summaries, or `local`."""
    notes: list[str]
    """Problems during the task, and how each was handled."""


@prebuild_decoder
class ReembeddingPayload(msgspec.Struct, frozen=True):
    """What a task that embeds all documents again works on."""

    space: str
    """The vector space of the embedder that was configured when the task was started."""


@prebuild_decoder
class VectorIndexPayload(msgspec.Struct, frozen=True):
    """What a task that adds the vectors of an owner to an index works on."""

    owner_id: str
    space: str


class ReembeddingStarted(WireStruct, frozen=True, kw_only=True):
    task_id: str
    space: str
    """The vector space that is being filled."""
    documents: int
    """The number of documents of the account."""


class Progress(WireStruct, frozen=True):
    done: NonNegative
    total: NonNegative


class Task(WireStruct, frozen=True, kw_only=True):
    task_id: str
    account_id: str
    user_id: str
    task_type: str
    """The kind of the task, such as `session_commit`."""
    status: TaskStatus
    created_at: float
    updated_at: float
    processing_seconds: float
    resource_id: str
    """What the task works on: for the tasks of a session, its id."""
    subject: str | None
    """The `viking://` address that the task is about. It may not exist any more."""
    stage: str | None
    """The current step, `waiting` for an earlier task, or `retrying` after a failed attempt."""
    progress: Progress
    attempts: int
    next_attempt_at: datetime | None
    result: dict[str, Any] | None
    error_code: str | None
    error: str | None
    archive_uri: str | None
    """Only of a commit."""
    token_usage: TaskUsage
    created_at_iso: datetime
    updated_at_iso: datetime
