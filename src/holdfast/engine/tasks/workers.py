"""Threads that do what is due in a database. Any number of processes may do so at once: a lease tells whose it is."""

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable
from functools import cache, partial

from holdfast.config import Settings
from holdfast.engine.gate.rule import CallContext
from holdfast.engine.tasks import failures
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError, Observer
from holdfast.engine.tasks.kind import TaskKind
from holdfast.engine.tasks.models import Models
from holdfast.errors import HoldfastError
from holdfast.store.database import EVERY_ACCOUNT, Database
from holdfast.store.tables import auto_commit_checks, tasks
from holdfast.store.tables.tasks import Claim

SECOND = 1_000_000
LOOKS_AT_ONCE = 100
BEATS_PER_LEASE = 3
TIDY_SECONDS = 3_600.0
TROUBLED_SECONDS = 60.0
MIN_PAUSE = 0.001

log = logging.getLogger("holdfast.worker")
log.addHandler(logging.NullHandler())  # a library that nobody asked is silent; tasks tell what went wrong


def unobserved(_boundary: str) -> None:
    return None


class Workers:
    """Threads come into being when there is something to do; one takes a task, then the next looks for another."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        new_context: Callable[[], CallContext],
        kind: TaskKind,
        *,
        polls: bool,
        observe: Observer = unobserved,
        activity: Callable[[], int] = lambda: 0,
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        self._db = db
        self._settings = settings
        self._new_context = new_context
        self._kind = kind
        self._polls = polls
        self._observe = observe
        self._activity = activity
        self._tidy = tidy
        self._tidy_at = 0.0
        self._tools = Models(settings)
        self._closing_at: float | None = None
        self._forget_threads()
        # Not before now: at the end of a process, work has to stop before the database is closed.
        _close_at_exit()
        _every.add(self)

    def start(self) -> None:
        """Begin, if there is anything to do, or may be."""
        if self._polls or self._next_due() is not None:
            self.wake()

    def wake(self) -> None:
        """There is something to do."""
        self._look_where_we_are()
        with self._condition:
            self._woken = True
            if self._idle:
                self._condition.notify()
            else:
                self._add_thread()

    def busy(self) -> int:
        """How many tasks are in hand."""
        self._look_where_we_are()
        with self._condition:
            return len(self._held)

    def close(self, seconds: float) -> None:
        """Let what is due be done for so long; hand back what is still in hand. Calling it again does nothing."""
        self._look_where_we_are()
        with self._condition:
            if self._closing_at is not None:
                return
            self._closing_at = time.monotonic() + seconds
            self._condition.notify_all()
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, self._closing_at - time.monotonic()))
        self._hand_back()
        self._heart_stops.set()
        if not any(thread.is_alive() for thread in threads):
            self._tools.close()
        _every.discard(self)

    def _look_where_we_are(self) -> None:
        """A fork has none of its parent's threads, and what those have in hand is not its to hand back."""
        if self._process != os.getpid():
            self._tools = Models(self._settings)
            self._forget_threads()

    def _forget_threads(self) -> None:
        self._process = os.getpid()
        self._condition = threading.Condition()
        self._threads: set[threading.Thread] = set()
        self._held: dict[tuple[str, str, int], Claim] = {}
        self._idle = 0
        self._woken = False
        self._heart: threading.Thread | None = None
        self._heart_stops = threading.Event()

    def _add_thread(self) -> None:
        """The condition is held."""
        if self._closing_at is None and len(self._threads) < self._settings.worker_threads:
            thread = threading.Thread(target=self._run, name="holdfast worker", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _run(self) -> None:
        try:
            while self._rest_or_go_on():
                pass
        finally:
            with self._condition:
                self._threads.discard(threading.current_thread())
                is_over = self._closing_at is not None and not self._threads
            if is_over:
                self._tools.close()

    def _rest_or_go_on(self) -> bool:
        """Do one thing, or wait for one; whether to go on."""
        if self._polls and self._closing_at is not None:
            return False  # others are there for what is left
        try:
            claim = self._take()
            pause = self._until_due() if claim is None else None
        except Exception as error:  # noqa: BLE001 - most often the database is away, or was closed
            log.warning("cannot look for work: %s", failures.failure_of(error).message)
            return self._rest(self._settings.worker_poll_seconds)
        if claim is None:
            self._tidy_sometimes()
            return self._rest(pause)
        with self._condition:
            self._held[claim.key] = claim
            self._start_heart()
        self.wake()  # there may be more for another thread
        try:
            self._do(claim)
        finally:
            with self._condition:
                self._held.pop(claim.key, None)
        return not self._out_of_time()

    def _tidy_sometimes(self) -> None:
        now = time.monotonic()
        if now < self._tidy_at:
            return
        self._tidy_at = now + TIDY_SECONDS
        try:
            self._tidy()
        except HoldfastError as error:
            log.warning("tidying failed: %s", error.message)

    def _take(self) -> Claim | None:
        context = self._new_context()
        for account, log_id in self._db.read(
            EVERY_ACCOUNT, lambda tx: auto_commit_checks.due(tx, context.now, LOOKS_AT_ONCE)
        ):
            self._look(account, log_id, context)
        lease = round(self._settings.task_lease_seconds * SECOND)
        due = self._db.read(EVERY_ACCOUNT, tasks.next_due)
        if due is None or due > context.now:  # to look costs nothing; to take is a write
            return None
        return self._db.write(EVERY_ACCOUNT, lambda tx: tasks.claim(tx, context.now, lease))

    def _look(self, account: str, log_id: int, context: CallContext) -> None:
        try:
            self._db.write(account, lambda tx: self._kind.check(tx, log_id, context))
        except Exception as error:  # noqa: BLE001 - one session must not keep the others waiting
            log.warning("cannot look at a session: %s", failures.failure_of(error).message)
            later = context.now + round(TROUBLED_SECONDS * SECOND)
            self._db.write(account, partial(auto_commit_checks.look_at, log_id=log_id, due_at=later))

    def _do(self, claim: Claim) -> None:
        try:
            self._observe("claimed")
            claimed = ClaimedTask(
                self._db, self._settings, self._new_context, self._tools, claim, self._observe, self._activity
            )
            if failures.has_killed_too_many(claimed):
                failures.handle(self._kind, claimed, failures.worker_died(claimed))
                return
            try:
                self._kind.perform(claimed)
            except LeaseLostError:
                raise
            except Exception as error:  # noqa: BLE001 - it is written down where everybody can see it
                log.warning("task %s: %s", claim.task.task_id, failures.failure_of(error).message)
                failures.handle(self._kind, claimed, error)
        except LeaseLostError:
            log.info("task %s went to another worker", claim.task.task_id)
        except Exception as error:  # noqa: BLE001 - most often the database is away; the lease will end, we go on
            log.warning("task %s: %s", claim.task.task_id, failures.failure_of(error).message)

    def _next_due(self) -> int | None:
        found = self._db.read(EVERY_ACCOUNT, lambda tx: (tasks.next_due(tx), auto_commit_checks.next_due(tx)))
        return min((due for due in found if due is not None), default=None)

    def _until_due(self) -> float | None:
        """Seconds until something is due or may be; None if nothing will be that we are not told of."""
        due = self._next_due()
        if due is not None:  # what is due already is in the hands of another who is about to take it
            known = max(MIN_PAUSE, (due - self._new_context().now) / SECOND)
            return min(known, self._settings.worker_poll_seconds)
        return self._settings.worker_poll_seconds if self._polls else None

    def _rest(self, seconds: float | None) -> bool:
        """Wait until woken, or for so long; whether to go on."""
        with self._condition:
            if self._closing_at is not None:
                return False  # nothing is due
            if not self._woken:
                self._idle += 1
                self._condition.wait(seconds)
                self._idle -= 1
            self._woken = False
        return True

    def _out_of_time(self) -> bool:
        return self._closing_at is not None and time.monotonic() >= self._closing_at

    def _hand_back(self) -> None:
        """Let others take at once what could not be finished here."""
        with self._condition:
            held = list(self._held.values())
        for claim in held:
            context = self._new_context()
            try:
                self._db.write(claim.account, partial(tasks.hand_back, claim=claim, now=context.now))
            except HoldfastError as error:
                log.warning("task %s could not be handed back: %s", claim.task.task_id, error.message)

    def _start_heart(self) -> None:
        """The condition is held."""
        if self._heart is None or not self._heart.is_alive():
            self._heart = threading.Thread(target=self._beat, name="holdfast heart", daemon=True)
            self._heart.start()

    def _beat(self) -> None:
        """Hold on to what is in hand, for as long as this process lives."""
        lease = self._settings.task_lease_seconds
        while not self._heart_stops.wait(lease / BEATS_PER_LEASE):
            with self._condition:
                held = list(self._held.values())
            until = self._new_context().now + round(lease * SECOND)
            for claim in held:
                try:
                    self._db.write(claim.account, partial(tasks.extend, claim=claim, until=until))
                except HoldfastError as error:
                    log.warning("task %s could not be held: %s", claim.task.task_id, error.message)


_every: "weakref.WeakSet[Workers]" = weakref.WeakSet()


def _close_all() -> None:
    for workers in list(_every):
        workers.close(workers._settings.close_seconds)  # noqa: SLF001


@cache
def _close_at_exit() -> None:
    atexit.register(_close_all)
