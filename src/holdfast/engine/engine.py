"""The gate: every operation, from a client or over HTTP, is checked, prepared and run by the engine."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from holdfast import lazy
from holdfast.computing.runners import open_runner
from holdfast.config import Settings
from holdfast.engine.admin import accounts, audit, observer, statistics, system
from holdfast.engine.admin.audit_upkeep import AuditUpkeep
from holdfast.engine.commits import archives, auto_commits, commits, resummaries
from holdfast.engine.gate import access, keys
from holdfast.engine.gate.audit_log import AuditLog
from holdfast.engine.gate.call import CheckedCall, PreparedCall
from holdfast.engine.gate.hooks import Hooks
from holdfast.engine.gate.ids import Clock, Ids, system_clock
from holdfast.engine.gate.models import Models
from holdfast.engine.gate.operation_handler import CallContext, CallSignals, EngineResources, OperationHandler
from holdfast.engine.gate.search_statistics import SearchStatistics
from holdfast.engine.gate.user_ids import UserIds
from holdfast.engine.kinds import QUEUES, TASK_KINDS
from holdfast.engine.processing import reindexing
from holdfast.engine.recall import search
from holdfast.engine.recall.embeddings import reembedding
from holdfast.engine.resources import adding, watching
from holdfast.engine.resources.packs import importing as pack_importing
from holdfast.engine.resources.packs import listing as pack_listing
from holdfast.engine.sessions import events, messages, sessions, sharing, tool_results
from holdfast.engine.skills import handlers as skills
from holdfast.engine.tasks import operations as tasks
from holdfast.engine.tasks.workers import Workers
from holdfast.engine.transfers import byte_reading, uploads
from holdfast.engine.tree import files, history, moving, writing
from holdfast.engine.tree.attributes import links, tags
from holdfast.engine.tree.patterns import glob, grep
from holdfast.errors import HoldfastError, PermissionDeniedError
from holdfast.model.identity import NO_ORIGIN, Origin, Principal
from holdfast.model.system import Backup
from holdfast.ops.table import OPERATIONS, Operation, fields_of, validate_operation
from holdfast.store import diagnostics
from holdfast.store.access import task_lists
from holdfast.store.database import EVERY_ACCOUNT, Database, ReplyCallback, Submission, Tx
from holdfast.store.tables import append_results, auto_commit_checks, unindexed
from holdfast.store.tables import tasks as stored_tasks
from holdfast.store.tables.embeddings import unembedded
from holdfast.store.tables.tree import blobs
from holdfast.store.tables.tree import uploads as stored_uploads

R = TypeVar("R")

HANDLERS: dict[type[Operation[Any]], OperationHandler] = {
    **sessions.HANDLERS,
    **messages.HANDLERS,
    **tool_results.HANDLERS,
    **events.HANDLERS,
    **sharing.HANDLERS,
    **commits.HANDLERS,
    **archives.HANDLERS,
    **resummaries.HANDLERS,
    **tasks.HANDLERS,
    **files.HANDLERS,
    **tags.HANDLERS,
    **links.HANDLERS,
    **grep.HANDLERS,
    **glob.HANDLERS,
    **history.HANDLERS,
    **moving.HANDLERS,
    **writing.HANDLERS,
    **reindexing.HANDLERS,
    **adding.HANDLERS,
    **watching.HANDLERS,
    **pack_listing.HANDLERS,
    **pack_importing.HANDLERS,
    **uploads.HANDLERS,
    **byte_reading.HANDLERS,
    **skills.HANDLERS,
    **search.HANDLERS,
    **accounts.HANDLERS,
    **audit.HANDLERS,
    **system.HANDLERS,
    **observer.HANDLERS,
    **statistics.HANDLERS,
    **reembedding.HANDLERS,
}

CLEANUP_BATCH_ROWS = 1_000
"""How many expired rows one transaction deletes. Small, so that other writers do not wait long."""
MICROS_PER_SECOND = 1_000_000
MICROS_PER_HOUR = 3_600 * MICROS_PER_SECOND
MAX_CLOCK_ERROR = MICROS_PER_HOUR // 2
"""By how much the database's time may be too late after a restart of the machine. A key is kept that much longer."""


class Engine:
    """Owns the database, the models, the clock and the ids. Thread-safe. Close it after use."""

    def __init__(
        self,
        db: Database,
        settings: Settings | None = None,
        *,
        clock: Clock = system_clock,
        elapsed: Callable[[], float] = time.monotonic,
        ids: Ids | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self.db = db
        self.settings = settings or Settings()
        self.clock = clock
        """The system's time, for ids and for times that users see. What is due or expired, the database decides."""
        self._elapsed = elapsed
        self.ids = ids or Ids(clock)
        self.models = Models(self.settings)
        self.hooks = hooks or Hooks()
        self.job_runner = open_runner(self.settings, lambda: self._operation_count)
        self.workers: Workers | None = None
        self._operation_count = 0
        self._is_stopping = False
        self._search_statistics = SearchStatistics()
        self._polls_during_use = False
        self._last_poll = 0.0
        self._has_hooks = bool(self.hooks.before or self.hooks.after)
        self.audit_log = AuditLog(db, self.ids, clock)
        self._audit_upkeep = AuditUpkeep(db, self.settings, self.ids, clock)
        self._user_ids = UserIds(db, self.settings.key_cache_seconds)
        self._resources = EngineResources(
            db,
            self.settings,
            self.models,
            self.hooks,
            self.audit_log,
            self.wake_workers,
            self._user_ids.clear,
            lambda: self._is_stopping,
        )
        try:
            db.migrate(clock())
        except BaseException:
            db.close()
            raise

    def call(self, principal: Principal, op: Operation[R]) -> R:
        """Run `op` for `principal`, and return its result."""
        return self.prepare(self.check(principal, type(op), fields_of(op))).run()

    def check(
        self,
        principal: Principal,
        cls: type[Operation[R]],
        fields: dict[str, Any],
        *,
        strict: bool = True,
        origin: Origin = NO_ORIGIN,
    ) -> CheckedCall[R]:
        """Authorise and validate an operation. This never waits, so that an event loop can do it.

        `strict=False` also accepts numbers as strings, as in a query string.
        """
        self._operation_count += 1
        entry, handler = OPERATIONS[cls], HANDLERS[cls]
        try:
            access.require_role(principal, entry, cls.__name__)
            op = validate_operation(cls, fields, strict=strict)
            account = access.account_of(principal, entry, op)
        except PermissionDeniedError:
            self.audit_log.record_denied(principal, cls.__name__, fields, origin)
            raise
        context = self.new_context(origin)
        self._poll_if_due()
        checked = handler.check(context, op)
        prepares = handler.prepare is not None and handler.prepares(op)
        may_wait = account is None or prepares or self._has_hooks or not self._user_ids.is_known(principal)
        return CheckedCall(principal, op, entry, handler, account, checked, context, may_wait)

    def prepare(self, call: CheckedCall[R]) -> PreparedCall[R]:
        """Do what a call needs before its transaction. This may wait, if the call says so."""
        if self.hooks.before:
            call = self._run_before_hooks(call)
        account = call.account or access.find_account_of_task(self.db, call.op)
        principal = self._user_ids.resolve(call.principal)
        prepared, prepare = call.checked, call.handler.prepare
        if prepare is not None and call.handler.prepares(call.op):
            prepared = prepare(self._resources, principal, call.op, prepared)
        return PreparedCall(call, self._resources, principal, account, prepared)

    def new_context(self, origin: Origin = NO_ORIGIN) -> CallContext:
        return CallContext(
            self.clock(),
            self.ids,
            self.settings,
            self.db.count_waiting_writes,
            CallSignals(),
            origin,
            search_statistics=self._search_statistics,
        )

    def submit(self, calls: Sequence[tuple[PreparedCall[Any], ReplyCallback]]) -> None:
        """Run writes without waiting for them. Each reply is called in another thread."""
        self.db.submit([call.as_submission(reply) for call, reply in calls])

    def submit_probe(self, reply: ReplyCallback) -> None:
        """Make a test write in the queue of all writes. It changes nothing."""
        number = -2 - self.ids.random_48_bits()
        probe = partial(diagnostics.write_and_delete, number=number, now=self.clock())
        self.db.submit([Submission(EVERY_ACCOUNT, probe, reply)])

    def find_key_owner(self, key: str, address: str = "", *, counts_use: bool = True) -> keys.KeyOwner | None:
        """Return the owner of an API key that was sent from an address, or None if the key is not valid."""
        return keys.find_owner(self.db, key, self.clock(), self.audit_log, address, counts_use=counts_use)

    def count_tasks(self) -> dict[str, int]:
        """The number of tasks of all accounts in each state."""
        return self.db.read(EVERY_ACCOUNT, task_lists.counts)

    def delete_expired(self) -> None:
        """Delete results of appends that are too old to be retried, tasks that completed long ago, and old uploads."""
        deletions: list[tuple[Callable[..., int], int]] = [
            (append_results.delete_older_than, self.settings.idempotency_hours * MICROS_PER_HOUR + MAX_CLOCK_ERROR),
            (stored_uploads.delete_expired, 0),
        ]
        for name, kind in TASK_KINDS.items():
            hours_kept = kind.retention_hours(self.settings)
            if hours_kept is not None:
                age = hours_kept * MICROS_PER_HOUR
                deletions.append((partial(stored_tasks.delete_completed, kind=name), age))
        deletions.append((blobs.delete_unused, blobs.MIN_AGE_MICROS))
        for delete, age in deletions:
            while self.db.write(EVERY_ACCOUNT, partial(_delete_slice, delete, age)):
                pass
        self.audit_log.seal_all()
        self._audit_upkeep.remove_old_lines()

    def save_audit_heads(self) -> None:
        """Add the last lines of audit chains to the file that the settings name, if they have changed."""
        if self.settings.audit_head_file is not None:
            self.audit_log.settle()
            self.audit_log.seal_all()
            self._audit_upkeep.save_heads()

    def back_up(self, principal: Principal, target: Path, *, overwrite: bool) -> Backup:
        """Write a checked copy of the database, with the rows of all accounts, to a file."""
        if principal.role != "root":
            raise PermissionDeniedError("a backup has the data of all accounts; only the role root may make one")
        backup: Backup = lazy.load("holdfast.store.backups").back_up(
            self.db, target, lambda *_: None, overwrite=overwrite
        )
        return backup

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
                self.models,
                TASK_KINDS,
                auto_commits.check_session,
                QUEUES,
                polls=polls,
                job_runner=self.job_runner,
                delete_expired=self.delete_expired,
                save_audit_heads=self.save_audit_heads,
                elapsed=self._elapsed,
                when_stopped=self.models.close,  # a task that runs on after `close_seconds` may still use them
            )
            self._last_poll, self._polls_during_use = time.monotonic(), not polls
            self.workers.start()

    def wake_workers(self) -> None:
        """Let the workers claim tasks now."""
        if self.workers is not None:
            self.workers.wake()

    def has_work(self) -> bool:
        """Whether a task is pending or running, a session is due to be checked, or something is to be indexed."""
        task_wait, check_wait, unindexed_count, unembedded_count = self.db.read(
            EVERY_ACCOUNT,
            lambda tx: (
                stored_tasks.micros_until_due(tx, TASK_KINDS),
                auto_commit_checks.micros_until_due(tx),
                unindexed.count(tx, None, None),
                unembedded.count(tx, None, None),
            ),
        )
        is_indexed = unindexed_count + unembedded_count == 0
        return task_wait is not None or not is_indexed or (check_wait is not None and check_wait <= 0)

    def stop_workers(self) -> None:
        """Finish background tasks within the time that the settings allow, and release the rest.

        Operations that wait for background tasks stop waiting.
        """
        self._is_stopping = True
        if self.workers is not None:
            self.workers.close(self.settings.close_seconds)

    def close(self) -> None:
        self.stop_workers()
        if self.workers is None:
            self.models.close()
        with suppress(HoldfastError):
            self.save_audit_heads()
        self.job_runner.close()
        self.db.close()

    def _run_before_hooks(self, call: CheckedCall[R]) -> CheckedCall[R]:
        """Run the hooks before an operation. If they change it, it is checked again."""
        op = self.hooks.run_before(call.principal, call.op)
        if op is call.op:
            return call
        if type(op) is not type(call.op):
            raise TypeError(f"a hook returned a {type(op).__name__} for a {type(call.op).__name__}; keep the type")
        return self.check(call.principal, type(call.op), fields_of(op), origin=call.context.origin)

    def _poll_if_due(self) -> None:
        """Poll for tasks of other processes once per lease, if the workers do not poll by themselves."""
        if self._polls_during_use and time.monotonic() - self._last_poll > self.settings.task_lease_seconds:
            self._last_poll = time.monotonic()
            self.wake_workers()


def _delete_slice(delete: Callable[..., int], age: int, tx: Tx) -> int:
    """Delete some expired rows, and return how many. Finding them may take long."""
    tx.allow_long_statements()
    return delete(tx, age=age, limit=CLEANUP_BATCH_ROWS)
