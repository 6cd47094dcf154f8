"""The transport to an engine in this process."""

import _thread
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from holdfast.client.telemetry import call_measured
from holdfast.composition import Target, open_engine
from holdfast.engine import Engine
from holdfast.model.identity import Principal
from holdfast.model.system import Backup
from holdfast.ops.table import Operation

R = TypeVar("R")


class LocalTransport:
    """Calls an engine directly."""

    def __init__(self, engine: Engine, principal: Principal) -> None:
        self.principal = principal
        self.engine = engine
        self._finalizer = close_when_dropped(self, engine)

    def call(self, op: Operation[R]) -> R:
        return call_measured(self.engine, self.principal, op)

    def back_up(self, target: Path, *, overwrite: bool) -> Backup:
        return self.engine.back_up(self.principal, target, overwrite=overwrite)

    def close(self) -> None:
        self._finalizer.detach()
        self.engine.close()


def close_when_dropped(transport: object, engine: Engine) -> "weakref.finalize[[Engine], object]":
    """Close the engine when the program drops the transport without closing it. Otherwise its threads would run on.

    At exit, the database and the workers close themselves.
    """
    finalizer = weakref.finalize(transport, _close_in_a_thread, engine)
    finalizer.atexit = False
    return finalizer


def _close_in_a_thread(engine: Engine) -> None:
    """Close the engine without waiting: this may run in any thread, and in the middle of a transaction.

    `threading.Thread` takes locks that the interrupted code may hold. Therefore it is started by another thread.
    """
    thread = threading.Thread(target=engine.close, name="holdfast-close", daemon=True)
    with suppress(RuntimeError):  # the interpreter is shutting down
        _thread.start_new_thread(thread.start, ())


def open_local(target: Target, principal: Principal) -> LocalTransport:
    return LocalTransport(open_engine(target), principal)
