"""The client's side of commits: archives, contexts and tasks. `acommits.py` is its asynchronous twin."""

import time
from time import monotonic

from holdfast.client.sync.transport import Transport
from holdfast.errors import DeadlineExceededError
from holdfast.model.archives import Archive, ArchiveInfo, Committed, Expanded, SessionContext
from holdfast.model.tasks import Task, TaskStatus
from holdfast.ops.commits import (
    CancelTask,
    CommitSession,
    ExpandContext,
    GetSessionArchive,
    GetSessionContext,
    GetTask,
    ListArchives,
    ListTasks,
    RetryArchive,
    RetryTask,
)

FIRST_POLL_SECONDS = 0.01
MAX_POLL_SECONDS = 0.5


class Commits:
    """What becomes of messages that were committed."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def commit_session(self, session_id: str, keep_recent_count: int = 0) -> Committed:
        """Seal the live messages in an archive, but for the last `keep_recent_count`; a task summarises it."""
        return self._transport.call(CommitSession(session_id=session_id, keep_recent_count=keep_recent_count))

    def get_session_context(self, session_id: str, token_budget: int = 128_000) -> SessionContext:
        """What to show a model: the latest system message, messages that no archive stands for, the latest overview."""
        return self._transport.call(GetSessionContext(session_id=session_id, token_budget=token_budget))

    def get_session_archive(self, session_id: str, archive_id: str) -> Archive:
        """An archive that is done, with all its messages."""
        return self._transport.call(GetSessionArchive(session_id=session_id, archive_id=archive_id))

    def list_archives(self, session_id: str, *, after: int = 0, limit: int = 100) -> list[ArchiveInfo]:
        """The archives of a session in order, behind number `after`, each with its state."""
        return self._transport.call(ListArchives(session_id=session_id, after=after, limit=limit))

    def retry_archive(self, session_id: str, archive_id: str) -> Task:
        """Begin the work on a failed or cancelled archive again."""
        return self._transport.call(RetryArchive(session_id=session_id, archive_id=archive_id))

    def expand(self, session_id: str, ref: str, token_budget: int = 32_000) -> Expanded:
        """Bring back what an overview stands for: an archive, a message, or seqs: `12-40`, `[#3, #12-40]`."""
        return self._transport.call(ExpandContext(session_id=session_id, ref=ref, token_budget=token_budget))

    def get_task(self, task_id: str) -> Task:
        return self._transport.call(GetTask(task_id=task_id))

    def list_tasks(
        self,
        *,
        task_type: str | None = None,
        status: TaskStatus | None = None,
        resource_id: str | None = None,
        limit: int = 50,
    ) -> list[Task]:
        """Tasks, newest first. Those that failed wait for somebody: retry or cancel them."""
        op = ListTasks(task_type=task_type, status=status, resource_id=resource_id, limit=limit)
        return self._transport.call(op)

    def retry_task(self, task_id: str) -> Task:
        """Begin a failed or cancelled task again, or one at once that would be tried later."""
        return self._transport.call(RetryTask(task_id=task_id))

    def cancel_task(self, task_id: str) -> Task:
        """End a task that is not done. The messages of its archive stay in the context."""
        return self._transport.call(CancelTask(task_id=task_id))

    def wait_for_task(self, task_id: str, seconds: float = 60.0) -> Task:
        """The task once it is completed, failed or cancelled; at the latest after so many seconds."""
        deadline = monotonic() + seconds
        glance = FIRST_POLL_SECONDS
        while True:
            task = self.get_task(task_id)
            if task.status not in {"pending", "running"}:
                return task
            if monotonic() > deadline:
                raise DeadlineExceededError(
                    f"task {task_id} is still {task.status} after {seconds:g} s; it goes on, ask for it again",
                    resource=task_id,
                )
            time.sleep(glance)
            glance = min(glance * 1.2, MAX_POLL_SECONDS)
