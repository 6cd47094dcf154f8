"""Four worker processes on two clocks, writers on both, and kills: each archive is done once, in order and in time."""

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import msgspec

from holdfast.client.local import LocalTransport
from holdfast.client.sync.client import Client
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.model.identity import Principal
from holdfast.testing.faults.workers.processes import (
    add_and_commit,
    check_archived_once,
    run_workers,
    wait_for_archives,
)
from holdfast.testing.faults.workers.program import WorkerOptions, wrong_clock

MINUTE, DAY = 60.0, 86_400.0
KILL_POINTS = ("claimed", "inside summarise", "summarise is checkpointed", "finish is written", "finish is committed")
WORKERS = 4
LEASE_SECONDS = 2.0
MAX_SECONDS = 60.0
"""How long the archives may take beyond the leases of the killed workers, by a true clock."""


class Scenario(msgspec.Struct, frozen=True):
    """The clocks of the two kinds of machines, in seconds from the true time. A clock with several values jumps."""

    name: str
    one: tuple[float, ...]
    other: tuple[float, ...]


SCENARIOS = [
    Scenario("ahead", (0.0,), (3 * DAY,)),
    Scenario("behind", (0.0,), (-3 * DAY,)),
    Scenario("minutes apart", (-5 * MINUTE,), (5 * MINUTE,)),
    Scenario("seconds apart", (0.0,), (20.0,)),
    Scenario("jumping", (0.0, 3 * DAY, -3 * DAY, 20.0), (0.0, -20.0, 30 * DAY)),
]


class Machine:
    """An engine with a wrong clock and a client of it. It runs no tasks."""

    def __init__(self, target: str, shifts: tuple[float, ...]) -> None:
        settings = Settings(worker_threads=0)
        self.engine = Engine(open_database(target, settings), settings, clock=wrong_clock(shifts))
        self.client = Client(LocalTransport(self.engine, Principal("default", "default", "root")))

    def close(self) -> None:
        self.client.close()


def run_scenario(scenario: Scenario, target: str, folder: Path, *, archives: int, sessions_without_kill: int) -> float:
    """Commit sessions, each until it has `archives` archives, and return the seconds that it took.

    There is one more session for each kill point: the first worker that runs its task is killed there.
    """
    sessions = [f"{number}" for number in range(sessions_without_kill + len(KILL_POINTS))]
    kill_points = dict(zip(sessions[sessions_without_kill:], KILL_POINTS, strict=True))
    options = WorkerOptions(
        target=target,
        settings={"worker_threads": 1, "task_lease_seconds": LEASE_SECONDS, "worker_poll_seconds": 0.02},
        processes=WORKERS,
        kill_points=kill_points,
        kill_folder=str(folder),
        clock_shifts=(scenario.one, scenario.other),
    )
    with ExitStack() as stack:
        machines = [stack.enter_context(closing(Machine(target, shifts))) for shifts in (scenario.one, scenario.other)]
        clients = [machine.client for machine in machines]
        for number, session_id in enumerate(sessions):
            add_and_commit(clients[number % 2], session_id, 1, count=2)
        begun = time.monotonic()
        supervisor = stack.enter_context(run_workers(options))
        for number, session_id in enumerate(sessions):
            add_and_commit(clients[(number + 1) % 2], session_id, archives - 1, count=2)
            _check_key_is_kept(machines, session_id)
        wait_for_archives(clients[0], sessions, archives)
        seconds = time.monotonic() - begun
        assert supervisor.killed_sessions() == set(kill_points)
        for session_id in sessions:
            check_archived_once(clients[0], session_id, archives, with_one_clock=False)
            assert _attempts(clients[0], session_id) <= archives + (session_id in kill_points), session_id
    assert seconds < LEASE_SECONDS + MAX_SECONDS
    return seconds


def _check_key_is_kept(machines: Sequence[Machine], session_id: str) -> None:
    """Append on one machine, delete expired keys on the other, and repeat the append."""
    for number, machine in enumerate(machines):
        append = partial(machine.client.add_message, f"keys-{session_id}", "user", "once", idempotency_key=str(number))
        first = append()
        machines[1 - number].engine.delete_expired()
        assert append() == first


def _attempts(client: Client, session_id: str) -> int:
    return sum(client.get_task(archive.task_id).attempts for archive in client.list_archives(session_id))
