"""What can be asked about committing a session: its archives, its context, and the tasks behind them."""

from typing import Annotated

import msgspec

from holdfast.model.archives import Archive, ArchiveInfo, Committed, Expanded, SessionContext
from holdfast.model.base import Name
from holdfast.model.sessions import NonNegative
from holdfast.model.tasks import Task, TaskStatus
from holdfast.ops.table import Operation, operation

Ref = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=1_000,
        description="use an archive id, a message id, a seq such as 12, a range such as 12-40, or citations: [#3, #12]",
    ),
]


@operation("POST /sessions/{session_id}/commit", audited=True)
class CommitSession(Operation[Committed], frozen=True, kw_only=True):
    """Seals the live messages in an archive, but for the last `keep_recent_count`; a task summarises it."""

    session_id: Name
    keep_recent_count: NonNegative | None = None
    """None, if it is not said."""


@operation("GET /sessions/{session_id}/context")
class GetSessionContext(Operation[SessionContext], frozen=True, kw_only=True):
    """What a model is to be shown: every message that no finished archive stands for, and the latest overview.

    The budget goes to the messages, which always come, then to the overview, then to large tool outputs: each whole
    or not at all. An output that does not fit is a preview that ends with a mark and has a line in the receipt.
    """

    session_id: Name
    token_budget: NonNegative = 128_000


@operation("GET /sessions/{session_id}/archives")
class ListArchives(Operation[list[ArchiveInfo]], frozen=True, kw_only=True):
    """In order, behind archive number `after`, each with its state."""

    session_id: Name
    after: NonNegative = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100


@operation("GET /sessions/{session_id}/archives/{archive_id}")
class GetSessionArchive(Operation[Archive], frozen=True, kw_only=True):
    """An archive that is done, with all its messages."""

    session_id: Name
    archive_id: Name


@operation("POST /sessions/{session_id}/archives/{archive_id}/retry", audited=True)
class RetryArchive(Operation[Task], frozen=True, kw_only=True):
    """Begins the work on a failed or cancelled archive again. What it had finished is not paid for again."""

    session_id: Name
    archive_id: Name


@operation("GET /sessions/{session_id}/expand")
class ExpandContext(Operation[Expanded], frozen=True, kw_only=True):
    """Brings back messages that an overview stands for, as many as the budget has room for, but at least one.

    What they leave of the budget goes to large tool outputs, each whole or as a marked preview.
    """

    session_id: Name
    ref: Ref
    token_budget: NonNegative = 32_000


@operation("GET /tasks/{task_id}", scope="tenant_or_operator")
class GetTask(Operation[Task], frozen=True, kw_only=True):
    task_id: Name


@operation("GET /tasks", scope="tenant_or_operator")
class ListTasks(Operation[list[Task]], frozen=True, kw_only=True):
    """Newest first. Those with the status failed are the ones that wait for somebody: retry or cancel them."""

    task_type: Name | None = None
    status: TaskStatus | None = None
    resource_id: Name | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 50


@operation("POST /tasks/{task_id}/cancel", audited=True, scope="tenant_or_operator")
class CancelTask(Operation[Task], frozen=True, kw_only=True):
    """Ends a task that is not done. The messages of its archive stay in the context."""

    task_id: Name


@operation("POST /tasks/{task_id}/retry", audited=True, scope="tenant_or_operator")
class RetryTask(Operation[Task], frozen=True, kw_only=True):
    """Begins a failed or cancelled task again. What it had finished is not paid for again."""

    task_id: Name
