"""Worker threads that run the tasks of a database.

Any number of processes can run the tasks of one database at the same time. A worker claims a task for the time of a
lease, and sends heartbeats that extend the lease. If its process dies the lease expires, and another worker claims
the task.
"""

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from holdfast.computing.job import JobRunner
from holdfast.computing.thread import ThreadRunner
from holdfast.config import Settings
from holdfast.engine.gate.models import Models
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks import completion, failures
from holdfast.engine.tasks.account_queues import AccountQueue
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError, Observer
from holdfast.engine.tasks.clock_watch import ClockWatch
from holdfast.engine.tasks.task_kind import TaskKind
from holdfast.errors import HoldfastError
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx
from holdfast.store.tables import auto_commit_checks, tasks
from holdfast.store.tables.tasks import Claim

MICROS_PER_SECOND = 1_000_000
MAX_SESSION_CHECKS = 100
"""How many sessions are checked before a task is claimed."""
MAX_QUEUED_ROWS = 100
"""How many rows of a queue are looked at for accounts that need a task, before a task is claimed."""
HEARTBEATS_PER_LEASE = 3
CLEANUP_INTERVAL_SECONDS = 3_600.0
HEADS_INTERVAL_SECONDS = 60.0
"""How often the heads of audit chains are saved, if the settings name a file."""
MISDATED_INTERVAL_SECONDS = 10.0
"""How often a process searches for tasks that a wrong clock has put far in the future."""
MAX_RETRY_SECONDS = 3_600.0
"""The longest wait that a model provider can ask for."""
RECHECK_SECONDS = 60.0
"""The wait before a failed check of a session is repeated."""
MIN_WAIT_SECONDS = 0.001
MAX_CLAIM_SECONDS = 1.0
"""How long `close` waits for claims that have begun. A database that does not respond must not delay it for longer."""

log = logging.getLogger("holdfast.worker")
log.addHandler(logging.NullHandler())  # without it, Python prints warnings to stderr; errors are also recorded in tasks


def ignore_boundary(_boundary: str) -> None:
    return None


class Workers:
    """A pool of worker threads. A thread starts when there is work, and wakes the next one when it claims a task."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        new_context: Callable[[], CallContext],
        models: Models,
        kinds: Mapping[str, TaskKind],
        check_session: Callable[[Tx, int, CallContext], None],
        queues: Sequence[AccountQueue],
        *,
        polls: bool,
        observe: Observer = ignore_boundary,
        job_runner: JobRunner | None = None,
        delete_expired: Callable[[], None] = lambda: None,
        save_audit_heads: Callable[[], None] = lambda: None,
        elapsed: Callable[[], float] = time.monotonic,
        when_stopped: Callable[[], None] = lambda: None,
    ) -> None:
        self._db = db
        self._settings = settings
        self._new_context = new_context
        self._kinds = kinds
        self._check_due_session = check_session
        self._queues = queues
        self._polls = polls
        self._observe = observe
        self._job_runner = job_runner or ThreadRunner()
        self._delete_expired = delete_expired
        self._save_audit_heads = save_audit_heads
        self._elapsed = elapsed
        self._when_stopped = when_stopped
        self._next_cleanup = self._next_search = self._next_heads = 0.0
        self._clock_watch = ClockWatch(db, lambda: new_context().now)
        self._models = models
        self._close_deadline: float | None = None
        self._reset_threads()
        # Exit handlers run in reverse order. The database has registered its own by now, so workers stop before it.
        _close_at_exit()
        _all_workers.add(self)

    def start(self) -> None:
        """Start a thread if there is work, or if this pool polls for it."""
        if self._polls or self._micros_until_due() is not None:
            self.wake()

    def wake(self) -> None:
        """Let a thread claim tasks now. Start one if none is idle."""
        self._reset_after_fork()
        with self._condition:
            self._woken = True
            if self._idle:
                self._condition.notify()
            else:
                self._add_thread()

    def close(self, seconds: float) -> None:
        """Finish due work for at most `seconds`, then release unfinished tasks. Calling it again does nothing.

        `when_stopped` is called when no thread is left: now, or later by the last one.
        """
        self._reset_after_fork()
        with self._condition:
            if self._close_deadline is not None:
                return
            self._close_deadline = time.monotonic() + seconds
            self._condition.notify_all()
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, self._close_deadline - time.monotonic()))
        with self._condition:
            self._condition.wait_for(lambda: self._claims_begun == 0, MAX_CLAIM_SECONDS)
        self._release_claims()
        self._stop_heartbeats.set()
        if not threads:
            self._when_stopped()
        _all_workers.discard(self)

    def _reset_after_fork(self) -> None:
        """Start afresh in a forked child: it has no threads, and its parent's claims are not its own to release."""
        if self._process != os.getpid():
            self._reset_threads()

    def _reset_threads(self) -> None:
        self._process = os.getpid()
        self._condition = threading.Condition()
        self._threads: set[threading.Thread] = set()
        self._claims: dict[tuple[str, str, int], Claim] = {}
        self._claims_begun = 0
        self._idle = 0
        self._woken = False
        self._heartbeat_thread: threading.Thread | None = None
        self._stop_heartbeats = threading.Event()

    def _add_thread(self) -> None:
        """Start a thread unless there are enough. The caller holds the condition."""
        if self._close_deadline is None and len(self._threads) < self._settings.worker_threads:
            thread = threading.Thread(target=self._run, name="holdfast worker", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _run(self) -> None:
        try:
            while self._run_next():
                pass
        finally:
            with self._condition:
                self._threads.discard(threading.current_thread())
                is_last = self._close_deadline is not None and not self._threads
            if is_last:
                self._when_stopped()

    def _run_next(self) -> bool:
        """Claim and run one task, or wait for one. Return whether the thread continues."""
        if self._polls and self._close_deadline is not None:
            return False  # other processes poll for the remaining tasks
        if self._is_past_deadline():
            return False
        try:
            claim = self._claim_and_register()
            wait_seconds = self._seconds_until_due() if claim is None else None
        except Exception as error:  # noqa: BLE001 - most often the database is unreachable or closed
            log.warning("cannot poll for tasks: %s", failures.failure_from(error).message)
            return self._wait(self._settings.worker_poll_seconds)
        if claim is None:
            self._clean_up_if_due()
            return self._wait(wait_seconds)
        self.wake()  # another thread may find another task
        try:
            self._run_task(claim)
        finally:
            with self._condition:
                self._claims.pop(claim.key, None)
        return not self._is_past_deadline()

    def _claim_and_register(self) -> Claim | None:
        """Claim a task and add it to the claims, so that `close` releases it. It waits for claims that have begun."""
        with self._condition:
            self._claims_begun += 1
        try:
            claim = self._claim_next()
        except BaseException:
            self._end_claim(None)
            raise
        self._end_claim(claim)
        return claim

    def _end_claim(self, claim: Claim | None) -> None:
        with self._condition:
            self._claims_begun -= 1
            if claim is not None:
                self._claims[claim.key] = claim
                self._start_heartbeats()
            if self._close_deadline is not None:
                self._condition.notify_all()

    def _clean_up_if_due(self) -> None:
        now = time.monotonic()
        try:
            self._clock_watch.store_time_if_due()
            if now >= self._next_cleanup:
                self._next_cleanup = now + CLEANUP_INTERVAL_SECONDS
                self._delete_expired()
            if now >= self._next_heads:
                self._next_heads = now + HEADS_INTERVAL_SECONDS
                self._save_audit_heads()
        except HoldfastError as error:
            log.warning("cannot delete expired rows, or store the time or the audit heads: %s", error.message)

    def _claim_next(self) -> Claim | None:
        """Check the sessions that are due, then claim the task that is due the longest."""
        due_checks, due_accounts, has_misdated = self._db.read(EVERY_ACCOUNT, self._poll)
        for account, log_id in due_checks:
            self._check_session(account, log_id)
        for queue, account in due_accounts:
            self._db.write(account, partial(_start_task, queue, self._new_context()))
        if has_misdated:
            count = self._db.write(EVERY_ACCOUNT, lambda tx: tasks.make_misdated_due(tx, *self._longest_times()))
            log.warning("%d tasks were due later than they should be, by a wrong clock; they are due now", count)
        wait = self._db.read(EVERY_ACCOUNT, lambda tx: tasks.micros_until_due(tx, self._kinds))
        if wait is None or wait > 0:  # a read is cheap; a claim is a write
            return None
        lease = round(self._settings.task_lease_seconds * MICROS_PER_SECOND)
        now = self._new_context().now

        def claim(tx: Tx) -> Claim | None:
            # After the deadline, a task that this pool has just released would be claimed again.
            return None if self._is_past_deadline() else tasks.claim(tx, self._kinds, lease, now)

        return self._db.write(EVERY_ACCOUNT, claim)

    def _poll(self, tx: Tx) -> tuple[list[tuple[str, int]], list[tuple[AccountQueue, str]], bool]:
        """The account and log of sessions to be checked, the accounts in queues, and whether tasks are misdated."""
        self._clock_watch.compare(tx)
        has_misdated = False
        if time.monotonic() >= self._next_search:  # it reads all tasks that wait for their next attempt
            self._next_search = time.monotonic() + MISDATED_INTERVAL_SECONDS
            has_misdated = tasks.has_misdated(tx, *self._longest_times())
        checks = auto_commit_checks.list_due(tx, MAX_SESSION_CHECKS)
        due = [(queue, account) for queue in self._queues for account in queue.list_due_accounts(tx, MAX_QUEUED_ROWS)]
        return checks, due, has_misdated

    def _longest_times(self) -> tuple[int, int]:
        """The longest lease and the longest wait before an attempt, in microseconds."""
        seconds = self._settings.task_lease_seconds, max(self._settings.task_backoff_max_seconds, MAX_RETRY_SECONDS)
        lease, wait = (round(value * MICROS_PER_SECOND) for value in seconds)
        return lease, wait

    def _check_session(self, account: str, log_id: int) -> None:
        context = self._new_context()
        try:
            self._db.write(account, lambda tx: self._check_due_session(tx, log_id, context))
        except Exception as error:  # noqa: BLE001 - one session must not block the others
            log.warning("cannot check a session for an automatic commit: %s", failures.failure_from(error).message)
            wait = round(RECHECK_SECONDS * MICROS_PER_SECOND)
            self._db.write(account, partial(auto_commit_checks.postpone, log_id=log_id, wait=wait))

    def _run_task(self, claim: Claim) -> None:
        kind = self._kinds[claim.task.kind]
        try:
            self._observe("claimed")
            claimed = ClaimedTask(
                self._db,
                self._settings,
                self._new_context,
                self._models,
                claim,
                self._observe,
                kind.spent,
                self._job_runner,
                self._elapsed,
            )
            if failures.has_too_many_crashes(claimed):
                failures.record(kind, claimed, failures.crash_error(claimed))
                return
            try:
                completion.perform(kind, claimed)
            except LeaseLostError:
                raise
            except Exception as error:  # noqa: BLE001 - it is recorded in the task, where its user can read it
                log.warning("task %s: %s", claim.task.task_id, failures.failure_from(error).message)
                failures.record(kind, claimed, error)
        except LeaseLostError:
            log.info("task %s: the lease was lost to another worker", claim.task.task_id)
        except Exception as error:  # noqa: BLE001 - most often the database is unreachable; the lease will expire
            log.warning("task %s: %s", claim.task.task_id, failures.failure_from(error).message)

    def _micros_until_due(self) -> int | None:
        waits = self._db.read(
            EVERY_ACCOUNT,
            lambda tx: (
                tasks.micros_until_due(tx, self._kinds),
                auto_commit_checks.micros_until_due(tx),
                *(queue.micros_until_due(tx) for queue in self._queues),
            ),
        )
        return min((wait for wait in waits if wait is not None), default=None)

    def _seconds_until_due(self) -> float | None:
        """Seconds until something may be due. None if this process will be woken for everything to come."""
        wait = self._micros_until_due()
        if wait is not None:  # a task that is due already is about to be claimed by another worker
            return min(max(MIN_WAIT_SECONDS, wait / MICROS_PER_SECOND), self._settings.worker_poll_seconds)
        return self._settings.worker_poll_seconds if self._polls else None

    def _wait(self, seconds: float | None) -> bool:
        """Wait until woken, or for `seconds`. Return whether the thread continues."""
        with self._condition:
            if self._close_deadline is not None:
                return False  # nothing is due
            if not self._woken:
                self._idle += 1
                self._condition.wait(seconds)
                self._idle -= 1
            self._woken = False
        return True

    def _is_past_deadline(self) -> bool:
        return self._close_deadline is not None and time.monotonic() >= self._close_deadline

    def _release_claims(self) -> None:
        """Release unfinished tasks, so that other workers can claim them before the lease expires."""
        with self._condition:
            claims = list(self._claims.values())
        for claim in claims:
            context = self._new_context()
            try:
                self._db.write(claim.account, partial(tasks.release_claim, claim=claim, now=context.now))
            except HoldfastError as error:
                log.warning("task %s: cannot release it: %s", claim.task.task_id, error.message)

    def _start_heartbeats(self) -> None:
        """Start the heartbeat thread if it does not run. The caller holds the condition."""
        if self._heartbeat_thread is None or not self._heartbeat_thread.is_alive():
            self._heartbeat_thread = threading.Thread(
                target=self._send_heartbeats, name="holdfast heartbeat", daemon=True
            )
            self._heartbeat_thread.start()

    def _send_heartbeats(self) -> None:
        """Extend the lease of each claimed task at regular intervals, for as long as this process lives."""
        lease = self._settings.task_lease_seconds
        while not self._stop_heartbeats.wait(lease / HEARTBEATS_PER_LEASE):
            with self._condition:
                claims = list(self._claims.values())
            for claim in claims:
                try:
                    self._db.write(
                        claim.account, partial(tasks.extend, claim=claim, lease=round(lease * MICROS_PER_SECOND))
                    )
                except HoldfastError as error:
                    log.warning("task %s: cannot extend its lease: %s", claim.task.task_id, error.message)


def _start_task(queue: AccountQueue, context: CallContext, tx: Tx) -> None:
    queue.start(tx, context)


_all_workers: "weakref.WeakSet[Workers]" = weakref.WeakSet()


def _close_all() -> None:
    for workers in list(_all_workers):
        workers.close(workers._settings.close_seconds)  # noqa: SLF001


@cache
def _close_at_exit() -> None:
    atexit.register(_close_all)
