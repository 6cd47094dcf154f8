"""The rule of an operation: what it prepares before its transaction, and what it does inside."""

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.config import Settings
from holdfast.engine.gate.ids import Ids
from holdfast.model.identity import Principal
from holdfast.store.database import Database, Tx


class TaskSignal:
    """Set by an operation that adds a background task. The workers are woken after its commit."""

    __slots__ = ("is_set",)

    def __init__(self) -> None:
        self.is_set = False


class CallContext(msgspec.Struct, frozen=True):
    """The context of one call: its time, its source of ids and its settings."""

    now: int
    ids: Ids
    settings: Settings
    count_waiting_writes: Callable[[], int]
    task_signal: TaskSignal


class WaitContext(msgspec.Struct, frozen=True):
    """The context of an operation that waits before its transaction."""

    db: Database
    settings: Settings
    is_stopping: Callable[[], bool]
    """Whether the workers have stopped. Then an operation that waits for a task never ends, so it must fail."""


def nothing_to_prepare(_context: CallContext, _principal: Principal, _op: Any) -> None:
    return None


def always(_op: Any) -> bool:
    return True


def never(_op: Any) -> bool:
    return False


class Rule(msgspec.Struct, frozen=True):
    handle: Callable[[Tx, Principal, Any, Any, CallContext], Any]
    """Runs inside the transaction, possibly more than once. It must have no effect except through `tx`."""
    writes: Callable[[Any], bool] = never
    prepare: Callable[[CallContext, Principal, Any], Any] = nothing_to_prepare
    """Runs once before the transaction, and in an HTTP client before it sends: validates, counts, encodes."""
    wait_for: Callable[[WaitContext, Principal, Any], None] | None = None
    """Blocks before the transaction until the operation may run. It runs in a thread that may block."""
