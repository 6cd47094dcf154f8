"""The gate: every operation, from a client or over HTTP, goes through `Engine.prepare`."""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from holdfast.computing.computers import open_computer
from holdfast.config import Settings
from holdfast.engine.admin import accounts, keys, system
from holdfast.engine.commits import archives, commits, tasks
from holdfast.engine.commits.background import COMMIT
from holdfast.engine.gate import access
from holdfast.engine.gate.ids import Clock, Ids, system_clock
from holdfast.engine.gate.prepared_call import PreparedCall
from holdfast.engine.gate.rule import CallContext, Rule, TaskSignal, WaitContext
from holdfast.engine.sessions import events, messages, sessions, tool_results
from holdfast.engine.tasks.workers import Workers
from holdfast.engine.tree import files
from holdfast.errors import NotFoundError
from holdfast.model.identity import Principal
from holdfast.ops.table import OPERATIONS, Operation, fields_of, validate_operation
from holdfast.store.database import EVERY_ACCOUNT, Database, ReplyCallback, Tx
from holdfast.store.tables import append_results, auto_commit_checks
from holdfast.store.tables import tasks as stored_tasks

R = TypeVar("R")

RULES: dict[type[Operation[Any]], Rule] = {
    **sessions.RULES,
    **messages.RULES,
    **tool_results.RULES,
    **events.RULES,
    **commits.RULES,
    **archives.RULES,
    **tasks.RULES,
    **files.RULES,
    **accounts.RULES,
    **system.RULES,
}

CLEANUP_BATCH_ROWS = 1_000
"""How many expired rows one transaction deletes. Small, so that other writers do not wait long."""
MICROS_PER_SECOND = 1_000_000
MICROS_PER_HOUR = 3_600 * MICROS_PER_SECOND


class Engine:
    """Owns the database, the clock and the ids. Thread-safe. Close it after use."""

    def __init__(
        self,
        db: Database,
        settings: Settings | None = None,
        *,
        clock: Clock = system_clock,
        ids: Ids | None = None,
    ) -> None:
        self.db = db
        self.settings = settings or Settings()
        self.clock = clock
        self.ids = ids or Ids(clock)
        self.computer = open_computer(self.settings, lambda: self._operation_count)
        self.workers: Workers | None = None
        self._operation_count = 0
        self._is_stopping = False
        self._polls_during_use = False
        self._last_poll = 0
        try:
            db.migrate(clock())
        except BaseException:
            db.close()
            raise

    def call(self, principal: Principal, op: Operation[R]) -> R:
        """Run `op` for `principal`, and return its result."""
        return self.prepare(principal, type(op), fields_of(op)).run()

    def prepare(
        self, principal: Principal, cls: type[Operation[R]], fields: dict[str, Any], *, strict: bool = True
    ) -> PreparedCall[R]:
        """Authorise, validate and prepare an operation, before its transaction."""
        self._operation_count += 1
        entry, rule = OPERATIONS[cls], RULES[cls]
        access.require_role(principal, entry, cls.__name__)
        op = validate_operation(cls, fields, strict=strict)
        account = access.account_of(principal, entry, op)
        if account == EVERY_ACCOUNT and isinstance(getattr(op, "task_id", None), str):
            account = self._find_account_of_task(op.task_id)  # type: ignore[attr-defined]  # tested in the line above
        context = self.new_context()
        self._poll_if_due(context.now)
        prepared = rule.prepare(context, principal, op)

        def transaction(tx: Tx) -> R:
            result: R = rule.handle(tx, principal, op, prepared, context)
            if entry.audit is not None:
                resource = access.audited_resource(entry.audit, op, result)
                access.record_audit(tx, principal, cls.__name__, resource, context)
            return result

        wait_for = None if rule.wait_for is None else partial(rule.wait_for, self.wait_context(), principal, op)
        return PreparedCall(
            self.db, account, rule.writes(op), transaction, context.task_signal, self.wake_workers, wait_for
        )

    def new_context(self) -> CallContext:
        return CallContext(self.clock(), self.ids, self.settings, self.db.count_waiting_writes, TaskSignal())

    def wait_context(self) -> WaitContext:
        return WaitContext(self.db, self.settings, lambda: self._is_stopping)

    def submit(self, calls: Sequence[tuple[PreparedCall[Any], ReplyCallback]]) -> None:
        """Run writes without waiting for them. Each reply is called in another thread."""
        self.db.submit([call.as_submission(reply) for call, reply in calls])

    def find_key_owner(self, key: str) -> keys.KeyOwner | None:
        """Return the owner of an API key, or None if the key is not valid."""
        return keys.find_owner(self.db, key, self.clock())

    def count_tasks(self) -> dict[str, int]:
        """The number of tasks of all accounts in each state."""
        return self.db.read(EVERY_ACCOUNT, stored_tasks.counts)

    def delete_expired(self) -> None:
        """Delete results of appends that are too old to be retried, and tasks that completed long ago."""
        for delete, hours in (
            (append_results.delete_older_than, self.settings.idempotency_hours),
            (stored_tasks.delete_completed_before, self.settings.task_retention_hours),
        ):
            before = self.clock() - hours * MICROS_PER_HOUR
            while self.db.write(EVERY_ACCOUNT, partial(delete, before=before, limit=CLEANUP_BATCH_ROWS)):
                pass

    def start_workers(self, *, polls: bool) -> None:
        """Run background tasks in threads of this process from now on.

        With `polls`, the workers poll for tasks of other processes at regular intervals. Otherwise they poll once now,
        and once per lease while operations are called.
        """
        if self.settings.worker_threads > 0:
            self.workers = Workers(
                self.db,
                self.settings,
                self.new_context,
                COMMIT,
                polls=polls,
                computer=self.computer,
                delete_expired=self.delete_expired,
            )
            self._last_poll, self._polls_during_use = self.clock(), not polls
            self.workers.start()

    def wake_workers(self) -> None:
        """Let the workers claim tasks now."""
        if self.workers is not None:
            self.workers.wake()

    def has_work(self) -> bool:
        """Whether a task is pending or running, or a session is due to be checked for an automatic commit."""
        next_task, next_check = self.db.read(
            EVERY_ACCOUNT, lambda tx: (stored_tasks.next_due(tx), auto_commit_checks.next_due(tx))
        )
        return next_task is not None or (next_check is not None and next_check <= self.clock())

    def stop_workers(self) -> None:
        """Finish background tasks within the time that the settings allow, and release the rest.

        Operations that wait for background tasks stop waiting.
        """
        self._is_stopping = True
        if self.workers is not None:
            self.workers.close(self.settings.close_seconds)

    def close(self) -> None:
        self.stop_workers()
        self.computer.close()
        self.db.close()

    def _find_account_of_task(self, task_id: str) -> str:
        """The account of a task that an operator names. Its operation runs in that account."""
        account = self.db.read(EVERY_ACCOUNT, lambda tx: stored_tasks.find_account(tx, task_id))
        if account is None:
            raise NotFoundError("task", task_id)
        return account

    def _poll_if_due(self, now: int) -> None:
        """Poll for tasks of other processes once per lease, if the workers do not poll by themselves."""
        lease = self.settings.task_lease_seconds * MICROS_PER_SECOND
        if self._polls_during_use and now - self._last_poll > lease:
            self._last_poll = now
            self.wake_workers()
