"""Operations on commits: archives and contexts."""

from typing import Annotated

import msgspec

from holdfast.model.access import Owner
from holdfast.model.archives import Archive, ArchiveInfo, Committed, Expanded, ResummaryStarted, SessionContext
from holdfast.model.base import Name, NonNegative
from holdfast.model.tasks import Task
from holdfast.ops.table import Operation, operation

Ref = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=1_000,
        description="use an archive id, a message id, a seq such as 12, a range such as 12-40, or citations: [#3, #12]",
    ),
]


@operation("POST /sessions/{session_id}/commit", right="write", audit="{session_id}")
class CommitSession(Operation[Committed], frozen=True, kw_only=True):
    """Seal the live messages except the last `keep_recent_count` in an archive, and start a task that summarises it."""

    session_id: Name
    owner: Owner | None = None
    keep_recent_count: NonNegative | None = None
    """None means 0."""


@operation("GET /sessions/{session_id}/context", right="read", answer="streamed")
class GetSessionContext(Operation[SessionContext], frozen=True, kw_only=True):
    """Return the context for a model: all messages not yet summarised, and the latest overview.

    The budget is used for the messages, which are always included, then for the overview, then for large tool
    outputs. The overview is included in full or not at all. A tool output that does not fit is a preview that ends
    with a marker, and has a line in the receipt.
    """

    session_id: Name
    owner: Owner | None = None
    token_budget: NonNegative = 128_000


@operation("GET /sessions/{session_id}/archives", right="read", answer="bounded")
class ListArchives(Operation[list[ArchiveInfo]], frozen=True, kw_only=True):
    """List the archives after number `after` in order, each with its state."""

    session_id: Name
    owner: Owner | None = None
    after: NonNegative = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100


@operation("GET /sessions/{session_id}/archives/{archive_id}", right="read", answer="streamed")
class GetSessionArchive(Operation[Archive], frozen=True, kw_only=True):
    """Return a finished archive with all its messages."""

    session_id: Name
    owner: Owner | None = None
    archive_id: Name


@operation(
    "POST /sessions/{session_id}/archives/{archive_id}/retry", right="write", audit="{session_id} archive={archive_id}"
)
class RetryArchive(Operation[Task], frozen=True, kw_only=True):
    """Retry a failed or cancelled archive. Its finished steps are not repeated."""

    session_id: Name
    owner: Owner | None = None
    archive_id: Name


@operation("POST /sessions/{session_id}/resummarise", right="write", audit="{session_id}")
class ResummariseSession(Operation[ResummaryStarted], frozen=True, kw_only=True):
    """Start a task that regenerates the summaries of all finished archives, with the current summariser or model.

    The old summaries are used until all are replaced at once. A failure leaves them in place.
    """

    session_id: Name
    owner: Owner | None = None


@operation("GET /sessions/{session_id}/expand", right="read", answer="streamed")
class ExpandContext(Operation[Expanded], frozen=True, kw_only=True):
    """Return archived messages, as many as fit the budget, but at least one.

    The rest of the budget is used for large tool outputs, each in full or as a preview that ends with a marker.
    """

    session_id: Name
    owner: Owner | None = None
    ref: Ref
    token_budget: NonNegative = 32_000
