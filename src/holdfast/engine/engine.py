"""The gate: every operation, from every surface, goes through `Engine.plan`."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.config import Settings
from holdfast.engine.admin import accounts, keys, system
from holdfast.engine.commits import archives, commits, tasks
from holdfast.engine.commits.background import COMMIT
from holdfast.engine.gate import access
from holdfast.engine.gate.ids import Clock, Ids, system_clock
from holdfast.engine.gate.rule import CallContext, Rule, Signal, WaitContext
from holdfast.engine.sessions import events, messages, sessions, tool_results
from holdfast.engine.tasks.workers import Workers
from holdfast.engine.tree import files
from holdfast.errors import NotFoundError
from holdfast.model.identity import Principal
from holdfast.ops.table import OPERATIONS, Operation, checked, fields_of
from holdfast.store.database import EVERY_ACCOUNT, Database, Reply, Submission, Tx
from holdfast.store.tables import append_results, auto_commit_checks, users
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

FORGET_AT_ONCE = 1_000
"""How many old results of appends one transaction drops, so that writers never wait long for it."""


SECOND = 1_000_000
HOUR = 3_600 * SECOND


USED_LATELY = 60_000_000
"""A key's last use is written down once a minute, not at every request."""


class Identified(msgspec.Struct, frozen=True):
    """Whose a key is, and until when."""

    principal: Principal
    expires_at: int | None


class Plan(msgspec.Struct, Generic[R], frozen=True):
    """An operation that was allowed, checked and prepared; what is left is its transaction."""

    db: Database
    account: str
    writes: bool
    work: Callable[[Tx], R]
    signal: Signal
    wake: Callable[[], None]
    """To be called once it is committed, if the signal was raised."""

    wait_for: Callable[[], None] | None = None
    """What it waits for, if it does: then it is to be run where waiting does no harm."""

    def run(self) -> R:
        if self.wait_for is not None:
            self.wait_for()
        result = (self.db.write if self.writes else self.db.read)(self.account, self.work)
        if self.signal.raised:
            self.wake()
        return result


class Engine:
    """Owns the database, the clock and the ids. Thread-safe; close it when done."""

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
        self.workers: Workers | None = None
        self._asked = 0
        self._stopping = False
        self._looks_around = False
        self._looked_at = 0
        try:
            db.migrate(clock())
        except BaseException:
            db.close()
            raise

    def call(self, principal: Principal, op: Operation[R]) -> R:
        """Do `op` on behalf of `principal`, and wait for it."""
        return self.plan(principal, type(op), fields_of(op)).run()

    def plan(
        self, principal: Principal, cls: type[Operation[R]], fields: dict[str, Any], *, strict: bool = True
    ) -> Plan[R]:
        """Allow, check and prepare an operation, outside any transaction."""
        self._asked += 1
        entry, rule = OPERATIONS[cls], RULES[cls]
        access.allow(principal, entry, cls.__name__)
        op = checked(cls, fields, strict=strict)
        account = access.account_of(principal, entry, op)
        if account == EVERY_ACCOUNT and isinstance(getattr(op, "task_id", None), str):
            account = self._account_of_task(op.task_id)  # type: ignore[attr-defined]  # as just asked
        context = self.new_context()
        self._look_around(context.now)
        ready = rule.prepare(context, principal, op)

        def work(tx: Tx) -> R:
            result: R = rule.handle(tx, principal, op, ready, context)
            if entry.audited:
                access.record(tx, principal, cls.__name__, access.resource_of(op, result), context)
            return result

        wait_for = None if rule.wait_for is None else partial(rule.wait_for, self.wait_context(), principal, op)
        return Plan(self.db, account, rule.writes(op), work, context.signal, self.wake, wait_for)

    def wait_context(self) -> WaitContext:
        return WaitContext(self.db, self.settings, lambda: self._stopping)

    def _account_of_task(self, task_id: str) -> str:
        """The operator looks after a task in the account that has it."""
        account = self.db.read(EVERY_ACCOUNT, lambda tx: stored_tasks.account_of(tx, task_id))
        if account is None:
            raise NotFoundError("task", task_id)
        return account

    def _look_around(self, now: int) -> None:
        """Who uses an embedded client also takes up, in time, what other processes left."""
        if self._looks_around and now - self._looked_at > self.settings.task_lease_seconds * SECOND:
            self._looked_at = now
            self.wake()

    def new_context(self) -> CallContext:
        return CallContext(self.clock(), self.ids, self.settings, self.db.waiting, Signal())

    def submit(self, asked: Sequence[tuple[Plan[Any], Reply]]) -> None:
        """Run writes whose callers do not wait; each reply is called in another thread."""
        self.db.submit([Submission(plan.account, plan.work, _waking(plan, reply)) for plan, reply in asked])

    def identify(self, key: str) -> Identified | None:
        """Whose key this is, if it is one that works."""
        parsed = keys.parse_key(key)
        if parsed is None:
            return None
        account, key_id = parsed
        found = self.db.read(account, lambda tx: users.find_key(tx, key_id))
        now = self.clock()
        if found is None or not keys.same(found.hash, keys.hash_of(key)):
            return None
        if found.expires_at is not None and found.expires_at <= now:
            return None
        if now - (found.last_used_at or 0) > USED_LATELY:
            # Nobody waits for it: who holds the database for writing must not keep others from reading.
            self.db.submit([Submission(account, lambda tx: users.touch_key(tx, key_id, now), lambda *_: None)])
        return Identified(Principal(account, found.user_id, found.role), found.expires_at)

    def count_tasks(self) -> dict[str, int]:
        """How many tasks of all accounts there are in each state."""
        return self.db.read(EVERY_ACCOUNT, stored_tasks.counts)

    def tidy(self) -> None:
        """Forget the results of appends that are too old to be retried, and tasks that ended long ago."""
        for forget, hours in (
            (append_results.forget_before, self.settings.idempotency_hours),
            (stored_tasks.forget_before, self.settings.task_retention_hours),
        ):
            before = self.clock() - hours * HOUR
            while self.db.write(EVERY_ACCOUNT, partial(forget, before=before, limit=FORGET_AT_ONCE)):
                pass

    def work(self, *, polls: bool) -> None:
        """Do background work in threads of this process from now on.

        Who `polls` looks time and again for what other processes left; else that is looked for now, and while
        operations come in.
        """
        if self.settings.worker_threads > 0:
            self.workers = Workers(
                self.db,
                self.settings,
                self.new_context,
                COMMIT,
                polls=polls,
                activity=lambda: self._asked,
                tidy=self.tidy,
            )
            self._looked_at, self._looks_around = self.clock(), not polls
            self.workers.start()

    def has_work(self) -> bool:
        """Whether a task is or can be worked on, now or later, or a session is to be looked at now."""
        due, look_at = self.db.read(
            EVERY_ACCOUNT, lambda tx: (stored_tasks.next_due(tx), auto_commit_checks.next_due(tx))
        )
        return due is not None or (look_at is not None and look_at <= self.clock())

    def stop_working(self) -> None:
        """Finish background work as far as there is time for, hand back the rest, and let nobody wait for it."""
        self._stopping = True
        if self.workers is not None:
            self.workers.close(self.settings.close_seconds)

    def wake(self) -> None:
        """Let background work begin at once."""
        if self.workers is not None:
            self.workers.wake()

    def close(self) -> None:
        self.stop_working()
        self.db.close()


def _waking(plan: Plan[Any], reply: Reply) -> Reply:
    def answer(outcome: Any, error: BaseException | None) -> None:
        reply(outcome, error)
        if plan.signal.raised:
            plan.wake()

    return answer
