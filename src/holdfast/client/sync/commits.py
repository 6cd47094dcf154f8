"""Client methods for commits, archives, contexts and tasks."""

import time
from time import monotonic

from holdfast.client.sync.transport import Transport
from holdfast.errors import DeadlineExceededError, NotFoundError
from holdfast.model.archives import Archive, ArchiveInfo, Committed, Expanded, ResummaryStarted, SessionContext
from holdfast.model.tasks import Task, TaskStatus
from holdfast.ops.commits import (
    CommitSession,
    ExpandContext,
    GetSessionArchive,
    GetSessionContext,
    ListArchives,
    ResummariseSession,
    RetryArchive,
)
from holdfast.ops.sessions import ListSessions
from holdfast.ops.tasks import CancelTask, GetTask, ListTasks, RetryTask

FIRST_POLL_SECONDS = 0.01
MAX_POLL_SECONDS = 0.5


class Commits:
    """Commits, the archives that they create, the contexts that contain them, and their tasks."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def commit_session(self, session_id: str, keep_recent_count: int = 0, *, owner: str | None = None) -> Committed:
        """Move the live messages, except the last `keep_recent_count`, to a new archive.

        A background task summarises the archive; pass the result's `task_id` to `wait_for_task`. Without messages to
        archive, the result has status `skipped` and no task.
        """
        return self._transport.call(
            CommitSession(session_id=session_id, owner=owner, keep_recent_count=keep_recent_count)
        )

    def get_session_context(
        self, session_id: str, token_budget: int = 128_000, *, owner: str | None = None
    ) -> SessionContext:
        """Return the context to send to a model.

        It holds the latest system message, all messages not yet summarised, and the latest overview and large tool
        outputs as far as the budget allows. The messages are always included, even if they exceed the budget. The
        `receipt` lists what was included and left out, and why.
        """
        return self._transport.call(GetSessionContext(session_id=session_id, owner=owner, token_budget=token_budget))

    def get_session_archive(self, session_id: str, archive_id: str, *, owner: str | None = None) -> Archive:
        """Return a finished archive with all its messages."""
        return self._transport.call(GetSessionArchive(session_id=session_id, owner=owner, archive_id=archive_id))

    def list_archives(
        self, session_id: str, *, after: int = 0, limit: int = 100, owner: str | None = None
    ) -> list[ArchiveInfo]:
        """List the archives of a session in order, starting after archive number `after`, each with its state."""
        return self._transport.call(ListArchives(session_id=session_id, owner=owner, after=after, limit=limit))

    def retry_archive(self, session_id: str, archive_id: str, *, owner: str | None = None) -> Task:
        """Restart the task of a failed or cancelled archive. Finished steps are not repeated."""
        return self._transport.call(RetryArchive(session_id=session_id, owner=owner, archive_id=archive_id))

    def resummarise(self, session_id: str | None = None, *, owner: str | None = None) -> list[ResummaryStarted]:
        """Regenerate the summaries of finished archives, with the current summariser or model.

        Of one session, or of all sessions of the caller. A background task per session does it; pass the `task_id` of
        a result to `wait_for_task`. The old summaries are used until all of a session are replaced at once. The result
        of a session without finished archives has status `skipped` and no task.
        """
        if session_id is not None:
            return [self._transport.call(ResummariseSession(session_id=session_id, owner=owner))]
        started: list[ResummaryStarted] = []
        cursor: str | None = None
        while True:
            page = self._transport.call(ListSessions(limit=100, cursor=cursor, shared=False))
            for session in page.sessions:
                try:
                    started.append(self._transport.call(ResummariseSession(session_id=session.session_id)))
                except NotFoundError:  # deleted meanwhile
                    continue
            cursor = page.next_cursor
            if cursor is None:
                return started

    def expand(self, session_id: str, ref: str, token_budget: int = 32_000, *, owner: str | None = None) -> Expanded:
        """Return the original messages that a summary refers to.

        `ref` is an archive id, a message id, a seq such as `12`, a range such as `12-40`, or a citation such as
        `[#3, #12-40]`. If not all messages fit the budget, `next_ref` of the result refers to the rest.
        """
        return self._transport.call(
            ExpandContext(session_id=session_id, owner=owner, ref=ref, token_budget=token_budget)
        )

    def get_task(self, task_id: str) -> Task:
        """Return a background task with its status and progress."""
        return self._transport.call(GetTask(task_id=task_id))

    def list_tasks(
        self,
        *,
        task_type: str | None = None,
        status: TaskStatus | None = None,
        resource_id: str | None = None,
        limit: int = 50,
    ) -> list[Task]:
        """List tasks, newest first. `resource_id` is the id of a session.

        A failed task stays failed until it is retried or cancelled.
        """
        op = ListTasks(task_type=task_type, status=status, resource_id=resource_id, limit=limit)
        return self._transport.call(op)

    def retry_task(self, task_id: str) -> Task:
        """Restart a failed or cancelled task, or run one now that is waiting for its next attempt.

        Finished steps are not repeated.
        """
        return self._transport.call(RetryTask(task_id=task_id))

    def cancel_task(self, task_id: str) -> Task:
        """Cancel an unfinished task. The messages of its archive stay in the context."""
        return self._transport.call(CancelTask(task_id=task_id))

    def wait_for_task(self, task_id: str, seconds: float = 60.0) -> Task:
        """Wait until a task is completed, failed or cancelled, and return it.

        Raises `DeadlineExceededError` if that takes more than `seconds`; the task itself continues.
        """
        deadline = monotonic() + seconds
        poll_seconds = FIRST_POLL_SECONDS
        while True:
            task = self.get_task(task_id)
            if task.status not in {"pending", "running"}:
                return task
            if monotonic() > deadline:
                raise DeadlineExceededError(
                    f"task {task_id} is still {task.status} after {seconds:g} s; it continues, wait for it again",
                    resource=task_id,
                )
            time.sleep(poll_seconds)
            poll_seconds = min(poll_seconds * 1.2, MAX_POLL_SECONDS)
