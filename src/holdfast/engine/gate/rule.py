"""How an operation is carried out: what is prepared outside the transaction, what is done inside."""

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.config import Settings
from holdfast.engine.gate.ids import Ids
from holdfast.model.identity import Principal
from holdfast.store.database import Database, Tx


class Signal:
    """Raised when something was written that background work waits for; heard once it is committed."""

    __slots__ = ("raised",)

    def __init__(self) -> None:
        self.raised = False


class CallContext(msgspec.Struct, frozen=True):
    """The circumstances of one call: its time, its source of ids, the settings in force."""

    now: int
    ids: Ids
    settings: Settings
    waiting: Callable[[], int]
    """How many writes wait."""
    signal: Signal


class WaitContext(msgspec.Struct, frozen=True):
    """What one who waits may look at."""

    db: Database
    settings: Settings
    stopping: Callable[[], bool]
    """Whether nothing will happen any more."""


def nothing_to_prepare(_context: CallContext, _principal: Principal, _op: Any) -> None:
    return None


def always(_op: Any) -> bool:
    return True


def never(_op: Any) -> bool:
    return False


class Rule(msgspec.Struct, frozen=True):
    handle: Callable[[Tx, Principal, Any, Any, CallContext], Any]
    """Runs inside the transaction, possibly more than once; its only effect is through `tx`."""
    writes: Callable[[Any], bool] = never
    prepare: Callable[[CallContext, Principal, Any], Any] = nothing_to_prepare
    """Runs once, before the transaction, and at a client before it sends: checks, counts, encodes."""
    wait_for: Callable[[WaitContext, Principal, Any], None] | None = None
    """Waits, before the transaction, for what has to happen first. Runs in a thread that may wait."""
