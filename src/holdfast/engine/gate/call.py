"""The two stages of a call before its transaction: checked, then prepared."""

import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.engine.gate import access, audit_lines
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler
from holdfast.engine.gate.streams import Page
from holdfast.errors import HoldfastError
from holdfast.model.identity import Principal
from holdfast.ops.search import SearchFields
from holdfast.ops.table import Operation, OperationEntry
from holdfast.store import read_memory
from holdfast.store.database import ReplyCallback, Submission, Tx, raise_if_cancelled

R = TypeVar("R")
T = TypeVar("T")


class CheckedCall(msgspec.Struct, Generic[R], frozen=True):
    """An operation that is authorised and valid. Nothing has waited for it yet."""

    principal: Principal
    op: Operation[R]
    entry: OperationEntry
    handler: OperationHandler
    account: str | None
    """The account of the transaction. None if the database must be asked for it."""
    checked: Any
    """What the handler's `check` returned."""
    context: CallContext
    may_wait: bool
    """Whether preparing it may wait. If so, prepare and run it in a thread that may wait, not on an event loop."""


class FollowingWait(Generic[R]):
    """What an operation waits for after its transaction."""

    def __init__(self, steps: Generator[float, None, R] | None, result: R) -> None:
        self._steps = steps
        self.result = result
        """The result of the transaction, and at the end that of the operation."""

    def next_wait(self) -> float | None:
        """Return the seconds to sleep before this is called again. None at the end."""
        if self._steps is None:
            return None
        try:
            return next(self._steps)
        except StopIteration as end:
            self.result = end.value
            return None


class PreparedCall(msgspec.Struct, Generic[R], frozen=True):
    """A checked call with everything that its transaction needs."""

    call: CheckedCall[R]
    resources: EngineResources
    principal: Principal
    """The caller, with the internal id."""
    account: str
    """The account of the transaction."""
    prepared: Any
    """What the handler's `prepare` returned, or its `check` if it prepares nothing."""

    @property
    def writes(self) -> bool:
        return self.call.handler.writes(self.call.op)

    def run(self) -> R:
        """Wait for what the operation waits for, then run the transaction, in this thread."""
        if self.call.handler.wait is not None:
            for seconds in self.waits():
                time.sleep(seconds)
        result = self.run_transaction()
        following = self.follow(result)
        while (seconds_or_none := following.next_wait()) is not None:
            time.sleep(seconds_or_none)
        return following.result

    def waits(self) -> Iterator[float]:
        """Yield the seconds to sleep before it is continued, until the transaction may run."""
        wait = self.call.handler.wait
        return iter(()) if wait is None else wait(self.resources, self.principal, self.call.op)

    def follow(self, result: R) -> "FollowingWait[R]":
        """Return what the operation waits for after its transaction, whose result is given."""
        follow = self.call.handler.follow
        steps = None if follow is None else follow(self.resources, self.principal, self.call.op, result)
        return FollowingWait(steps, result)

    def run_transaction(self, max_bytes: int = read_memory.NO_LIMIT) -> R:
        """Run the transaction in this thread.

        If it only reads, `max_bytes` limits what it holds in memory at once. It may then return a `StreamedResult`, or
        raise `LargeReadError`. A hook gets whole results.
        """
        raise_if_cancelled()  # a write that has begun is not cancelled
        db, call = self.resources.db, self.call
        try:
            if call.handler.writes(call.op):
                result = db.write(self.account, self._transaction)
            elif max_bytes == read_memory.NO_LIMIT or self.resources.hooks.after:
                result = db.read(self.account, self._transaction)
            else:
                result = self._read_limited(self._transaction, max_bytes)
        except HoldfastError as error:
            self._audit_error(error)
            raise
        self._after_commit()
        if isinstance(call.op, SearchFields):
            seconds = time.monotonic() - call.context.began_at
            caller = self.principal
            call.context.search_statistics.record(caller.account_id, caller.internal_id, result, seconds)
        if self.resources.hooks.after:
            self.resources.hooks.run_after(call.principal, call.op, result)
        return result

    def read_next(self, page: Page[Any], max_bytes: int) -> Page[Any]:
        """Read the page after `page`, in a transaction of its own."""
        assert page.read_next is not None  # noqa: S101 - the caller checked it
        return self._read_limited(page.read_next, max_bytes)

    def as_submission(self, reply: ReplyCallback) -> Submission:
        """The write in the form that `Database.submit` takes. `reply` gets its outcome. No hook runs."""

        def reply_and_wake(outcome: Any, error: BaseException | None) -> None:
            if error is None:
                self._after_commit()
            else:
                self._audit_error(error)
            reply(outcome, error)

        return Submission(self.account, self._transaction, reply_and_wake, self._locked_key())

    def _locked_key(self) -> str:
        """What the operation names: a session of the caller, or a task."""
        op = self.call.op
        session_id = getattr(op, "session_id", None)
        if session_id is not None:
            return f"{getattr(op, 'owner', None) or self.principal.internal_id}/{session_id}"
        return str(getattr(op, "task_id", None) or "")

    def _read_limited(self, transaction: Callable[[Tx], T], max_bytes: int) -> T:
        def limited(tx: Tx) -> T:  # sets the limit in the thread that runs the transaction
            with read_memory.limited_to(max_bytes):
                return transaction(tx)

        return self.resources.db.read(self.account, limited)

    def _transaction(self, tx: Tx) -> R:
        call = self.call
        audit_lines.begin_operation()
        result: R = call.handler.handle(tx, self.principal, call.op, self.prepared, call.context)
        call.context.signals.session = audit_lines.noted_session()
        if call.entry.audit is not None:
            resource = access.audited_resource(call.entry.audit, self.principal, call.op, result)
            access.record_audit(tx, self.principal, type(call.op).__name__, resource, call.context)
        return result

    def _after_commit(self) -> None:
        """Start what follows from the call in the background: its tasks, and what the audit log needs."""
        call, signals, audit_log = self.call, self.call.context.signals, self.resources.audit_log
        if signals.has_changed_users:
            self.resources.forget_users()
        if signals.has_tasks:
            self.resources.wake_workers()
        if signals.has_unsealed_lines:
            audit_log.seal_later(self.account)
        if call.entry.verb == "GET":
            audit_log.record_open(call.principal, call.op, call.context.origin, audit_lines.version_of(signals.session))
        for session in signals.opened:
            audit_log.record_found(self.principal, session, call.context.origin)

    def _audit_error(self, error: BaseException) -> None:
        """Record an error that denies access: a missing right, or a session that is hidden from the caller."""
        if getattr(error, "denies_access", False):
            call = self.call
            self.resources.audit_log.record_denied(call.principal, type(call.op).__name__, call.op, call.context.origin)
