"""Operations on background tasks."""

from typing import Annotated

import msgspec

from holdfast.model.base import Name
from holdfast.model.tasks import Task, TaskStatus
from holdfast.ops.table import Operation, operation

ResourceId = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]


@operation("GET /tasks/{task_id}", role="guest", scope="tenant_or_operator")
class GetTask(Operation[Task], frozen=True, kw_only=True):
    """Return a background task."""

    task_id: Name


@operation("GET /tasks", role="guest", scope="tenant_or_operator", answer="bounded")
class ListTasks(Operation[list[Task]], frozen=True, kw_only=True):
    """List background tasks, newest first. Failed tasks stay failed until they are retried or cancelled."""

    task_type: Name | None = None
    status: TaskStatus | None = None
    resource_id: ResourceId | None = None
    """A session, or the address of a resource."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 50


@operation(
    "POST /tasks/{task_id}/cancel",
    audit="{task_id} session={result.resource_id}",
    role="guest",
    scope="tenant_or_operator",
)
class CancelTask(Operation[Task], frozen=True, kw_only=True):
    """Cancel an unfinished task. After a cancelled commit, the messages of its archive stay in the context."""

    task_id: Name


@operation(
    "POST /tasks/{task_id}/retry",
    audit="{task_id} session={result.resource_id}",
    role="guest",
    scope="tenant_or_operator",
)
class RetryTask(Operation[Task], frozen=True, kw_only=True):
    """Retry a failed or cancelled task. Its finished steps are not repeated."""

    task_id: Name
