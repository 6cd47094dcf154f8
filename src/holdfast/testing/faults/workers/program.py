"""A program that forks workers and replaces those that are killed.

Run it with `python -m holdfast.testing.faults.workers.program OPTIONS`.
It prints the process id of each worker, one per line. When its standard input ends, it kills the workers and exits.
Each worker uses its process id as the API key of the model, so that the model can identify it.
"""

import copy
import importlib
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.commits.auto_commits import check_session
from holdfast.engine.gate.ids import Clock, system_clock
from holdfast.engine.kinds import QUEUES, TASK_KINDS
from holdfast.engine.tasks.workers import Workers
from holdfast.model.tasks import COMMIT
from holdfast.providers.static_vectors import StaticEmbedder
from holdfast.store.tables.tasks import Claim

KILLED_ARCHIVE = 1
"""The number of the archive whose worker is killed. Later archives of the session wait for it."""
POLL_SECONDS = 0.01
JUMP_SECONDS = 0.3
"""How often a clock jumps."""
INSIDE_STEP_SECONDS = 0.002
"""How long after the beginning of a step `inside STEP` kills the worker."""


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    target: str
    settings: dict[str, Any]
    """The settings that differ from the defaults."""
    processes: int = 1
    kill_points: dict[str, str] = {}
    """By session: where its worker is killed, at a boundary or `inside STEP`.

    That is the worker that summarises the first archive of the session, or that runs a task of it of another kind.
    """
    kill_folder: str
    """A folder with one file for each session whose worker was killed."""
    clock_shifts: tuple[tuple[float, ...], ...] = ((0.0,),)
    """How wrong the clock of each process is, in seconds. A clock with several values jumps from one to the next."""
    kill_every_time: bool = False
    """Whether the worker is killed at each attempt, not only at the first."""


class SelfKillingWorkers(Workers):
    """Workers that kill their process at the kill point of a session."""

    def __init__(self, engine: Engine, options: WorkerOptions) -> None:
        super().__init__(
            engine.db,
            engine.settings,
            engine.new_context,
            engine.models,
            TASK_KINDS,
            check_session,
            QUEUES,
            polls=True,
        )
        self._options = options

    def _run_task(self, claim: Claim) -> None:
        # A boundary may be reported by a thread other than the worker's, so the callback includes the claim.
        own = copy.copy(self)
        own._observe = partial(self._check_kill_point, claim)
        super(SelfKillingWorkers, own)._run_task(claim)

    def _check_kill_point(self, claim: Claim, boundary: str) -> None:
        session_id = claim.task.resource_id  # or the address of a resource
        kill_point = self._options.kill_points.get(session_id)
        is_later_archive = claim.task.kind == COMMIT and claim.task.order_position != KILLED_ARCHIVE
        if kill_point is None or is_later_archive:
            return
        if kill_point == boundary:
            self._kill_process(session_id)
        elif kill_point == f"inside {boundary.removesuffix(' begins')}" and boundary.endswith(" begins"):
            threading.Timer(INSIDE_STEP_SECONDS, self._kill_process, [session_id]).start()

    def _kill_process(self, session_id: str) -> None:
        file = Path(self._options.kill_folder, session_id.replace("/", "_"))
        if not self._options.kill_every_time and file.exists():
            return
        file.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def wrong_clock(shifts: Sequence[float]) -> Clock:
    """A clock that is wrong by `shifts` seconds, one after the other."""

    def read() -> int:
        shift = shifts[int(time.monotonic() / JUMP_SECONDS) % len(shifts)]
        return system_clock() + round(shift * 1_000_000)

    return read


def work(options: WorkerOptions, number: int) -> None:
    settings = Settings(**{**options.settings, "model_api_key": str(os.getpid())})
    clock = wrong_clock(options.clock_shifts[number % len(options.clock_shifts)])
    engine = Engine(open_database(options.target, settings), settings, clock=clock)
    SelfKillingWorkers(engine, options).start()
    threading.Event().wait()


def preload() -> None:
    """Load what every worker needs once, so that forked workers start quickly."""
    for module in ("holdfast.engine.commits.commit_task", "holdfast.providers.openai", "httpx2"):
        importlib.import_module(module)
    StaticEmbedder().embed(["warm"])


def fork(child: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        os.write(1, f"{pid}\n".encode())
        return pid
    try:
        child()
    except BaseException:  # noqa: BLE001 - a forked child must not return into the parent's code
        traceback.print_exc()
    finally:
        os._exit(1)


def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=WorkerOptions)
    preload()
    workers = {fork(partial(work, options, number)): number for number in range(options.processes)}
    while not select.select([0], [], [], POLL_SECONDS)[0]:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            number = workers.pop(pid)
            exit_code = os.waitstatus_to_exitcode(status)
            if exit_code != -signal.SIGKILL:
                os.write(2, f"worker {pid} ended with {exit_code}\n".encode())
                break
            workers[fork(partial(work, options, number))] = number
    for pid in workers:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
