"""The handler of an operation: what it checks and prepares before its transaction, and what it does inside."""

import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

import msgspec

from holdfast.config import Settings
from holdfast.engine.gate.audit_log import AuditLog
from holdfast.engine.gate.hooks import Hooks
from holdfast.engine.gate.ids import Ids
from holdfast.engine.gate.models import Models
from holdfast.engine.gate.search_statistics import SearchStatistics
from holdfast.model.identity import Origin, Principal
from holdfast.store.database import Database, Tx
from holdfast.store.tables.sessions import StoredSession


class CallSignals(msgspec.Struct):
    """What to do after the commit of a call."""

    has_tasks: bool = False
    has_changed_users: bool = False
    has_unsealed_lines: bool = False
    """Whether it wrote an audit line that is to be sealed."""
    session: StoredSession | None = None
    """The session that it acted on, as it was before."""
    opened: list[StoredSession] = []
    """The sessions that it read without having named them, such as those of the hits of a search."""


class CallContext(msgspec.Struct, frozen=True):
    """The context of one call: its time, its source of ids, its settings, and where it comes from."""

    now: int
    ids: Ids
    settings: Settings
    count_waiting_writes: Callable[[], int]
    signals: CallSignals
    origin: Origin
    began_at: float = msgspec.field(default_factory=time.monotonic)
    """For durations."""
    search_statistics: SearchStatistics = msgspec.field(default_factory=SearchStatistics)

    def wake_workers(self) -> None:
        """Wake the workers after the commit of this call: it added a task or a check that may be due."""
        self.signals.has_tasks = True

    def forget_users(self) -> None:
        """Forget cached internal ids after the commit of this call: it changed the id of a name."""
        self.signals.has_changed_users = True


class EngineResources(msgspec.Struct, frozen=True):
    """The parts of an engine that a call uses outside its transaction."""

    db: Database
    settings: Settings
    models: Models
    hooks: Hooks
    audit_log: AuditLog
    wake_workers: Callable[[], None]
    forget_users: Callable[[], None]
    is_stopping: Callable[[], bool]
    """Whether the workers have stopped. Then an operation that waits for a task never ends, so it must fail."""


def nothing_to_check(_context: CallContext, _op: Any) -> None:
    return None


def always(_op: Any) -> bool:
    return True


def never(_op: Any) -> bool:
    return False


class OperationHandler(msgspec.Struct, frozen=True):
    handle: Callable[[Tx, Principal, Any, Any, CallContext], Any]
    """Runs inside the transaction, possibly more than once. It must have no effect except through `tx`.

    Its fourth argument is what `prepare` returned; without `prepare`, what `check` returned.
    """
    writes: Callable[[Any], bool] = never
    check: Callable[[CallContext, Any], Any] = nothing_to_check
    """Validates, counts and encodes. Uses nothing but its arguments and never waits: a server runs it on its event
    loop, and an HTTP client before it sends the operation."""
    prepare: Callable[[EngineResources, Principal, Any, Any], Any] | None = None
    """Runs once, after `check` and outside any transaction. It may call a model, embed a text or read the database.
    Its last argument is what `check` returned."""
    prepares: Callable[[Any], bool] = always
    """Whether an operation needs `prepare`. Without it, `handle` gets what `check` returned."""
    wait: Callable[[EngineResources, Principal, Any], Iterator[float]] | None = None
    """Yields the seconds until it should be continued, for as long as the transaction must wait, for example for
    background tasks. A server needs no thread in between. It runs after `prepare`, outside any transaction."""
    follow: Callable[[EngineResources, Principal, Any, Any], Generator[float, None, Any]] | None = None
    """Waits for what the transaction has begun, such as a task. Its last argument is the result of the transaction.

    It yields the seconds until it should be continued, as `wait` does, and returns the result of the operation. It runs
    after the transaction, outside any other. The transaction is committed, whatever happens here."""
