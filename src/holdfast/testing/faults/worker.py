"""A program that forks workers, and another for each that is killed: `python -m holdfast.testing.faults.worker ORDERS`.

It tells the process id of each worker, a line each, and ends with all of them when its standard input ends.
The key that a worker shows to the model is its process id, so that the model can tell who asks.
"""

import copy
import importlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.commits.background import COMMIT
from holdfast.engine.tasks.workers import Workers
from holdfast.providers.static_vectors import StaticVectors
from holdfast.store.tables.tasks import Claim

FIRST = 1
"""The number of the archive whose worker is killed; those behind it wait for it."""
GLANCE = 0.01
INSIDE = 0.002


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    target: str
    settings: dict[str, Any]
    """What differs from the default."""
    processes: int = 1
    fates: dict[str, str] = {}
    """By session, the boundary at which a worker on its first archive is killed; `inside X` is soon after X began."""
    marks: str
    """A folder that remembers which fates came true."""
    again: bool = False
    """Whether the worker is killed each time, not once."""


class Doomed(Workers):
    """Workers that kill their process where its fate says."""

    def __init__(self, engine: Engine, orders: Orders) -> None:
        super().__init__(engine.db, engine.settings, engine.new_context, COMMIT, polls=True)
        self._orders = orders

    def _do(self, claim: Claim) -> None:
        # Who writes may be another thread than who works, so a boundary has to come with its claim.
        own = copy.copy(self)
        own._observe = partial(self._passes, claim)
        super(Doomed, own)._do(claim)

    def _passes(self, claim: Claim, boundary: str) -> None:
        session_id = claim.task.resource_id
        fate = self._orders.fates.get(session_id)
        if fate is None or claim.task.number != FIRST:
            return
        if fate == boundary:
            self._meet(session_id)
        elif fate == f"inside {boundary.removesuffix(' begins')}" and boundary.endswith(" begins"):
            threading.Timer(INSIDE, self._meet, [session_id]).start()

    def _meet(self, session_id: str) -> None:
        mark = Path(self._orders.marks, session_id)
        if not self._orders.again and mark.exists():
            return
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def work(orders: Orders) -> None:
    settings = Settings(**{**orders.settings, "model_api_key": str(os.getpid())})
    Doomed(Engine(open_database(orders.target, settings), settings), orders).start()
    threading.Event().wait()


def warm_up() -> None:
    """Load what every worker needs, once: a fork has it at once."""
    for module in ("holdfast.engine.commits.archiving", "holdfast.providers.openai", "httpx2"):
        importlib.import_module(module)
    StaticVectors().embed(["warm"])


def forked(child: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        os.write(1, f"{pid}\n".encode())
        return pid
    try:
        child()
    finally:
        os._exit(1)


def main() -> None:
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    warm_up()
    workers = {forked(partial(work, orders)) for _ in range(orders.processes)}
    while not select.select([0], [], [], GLANCE)[0]:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            workers.remove(pid)
            if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                break
            workers.add(forked(partial(work, orders)))
    for pid in workers:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
