"""Appends over HTTP while many sessions are committed, compared with appends alone."""

import sys
import time
from collections import deque
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import msgspec

import holdfast
from conversations import CONVERSATIONS
from measure import (
    Figure,
    Series,
    check_at_least,
    check_at_most,
    compute_statistics,
    freeze_heap,
    join_series,
    quantile,
)
from scale import Setup
from server import load, process
from server.http_appends import HOLDFAST
from server.load import LoadResult
from texts import Texts

CLIENTS = 8
MESSAGES = 50
MAX_SECONDS = 120.0
APPENDS_PER_HEALTH_CHECK = 20
COMMIT = b"/commit HTTP/1.1\r\n"
HEALTH = load.request("GET", "/health")


class Run(msgspec.Struct, frozen=True):
    """Appends alone and during commits, on one server."""

    alone: Series
    during: Series
    health_p99: float
    seconds: float
    """From the first commit until all are done."""
    server_cpu: float
    """CPU time of the server, without its child, during the commits."""

    @property
    def share(self) -> float:
        return (len(self.during.wall) / sum(self.during.wall)) / (len(self.alone.wall) / sum(self.alone.wall))


def measure(setup: Setup) -> list[Figure]:
    if sys.platform != "linux":
        setup.console.print("computing: skipped; it requires Linux, to read the CPU time of another process")
        return []
    sessions = setup.scale.committing_sessions
    runs = {place: _run(setup, place, sessions) for place in ("process", "thread")}
    run = runs["process"]
    notes = [
        f"{sessions} commits of {MESSAGES} messages in a {place}: {each.share:.2f} of the rate, done in"
        f" {each.seconds:.1f} s, /health p99 {each.health_p99 * 1e3:.0f} ms, {each.server_cpu:.1f} s CPU of the server"
        for place, each in runs.items()
    ]
    return [
        Figure(
            name=f"HTTP appends while {sessions} sessions are committed",
            measured=compute_statistics(run.during),
            baseline_name="HTTP appends alone (rates)",
            baseline=compute_statistics(run.alone),
            ratio=run.share,
            checks=[
                check_at_least(0.75, run.share, "≥ 0.75x"),
                check_at_most(25.0, run.seconds, "done in 25 s"),
                check_at_most(0.1, run.health_p99, "health < 100 ms"),
            ],
            notes=notes,
            extra_values={
                f"{place}_{name}": value
                for place, each in runs.items()
                for name, value in (
                    ("share", each.share),
                    ("seconds", each.seconds),
                    ("health_p99", each.health_p99),
                    ("server_cpu", each.server_cpu),
                )
            },
        )
    ]


def _run(setup: Setup, place: str, sessions: int) -> Run:
    folder, scale = setup.folder / place, setup.scale
    _prepare(folder, sessions)
    command = ["env", f"HOLDFAST_COMPUTE={place}", *HOLDFAST, str(folder)]
    requests = _requests()
    freeze_heap()
    with (
        process.run_server(command, setup.folder / f"{place}.log") as server,
        holdfast.connect(f"http://127.0.0.1:{server.port}") as client,
        load.connected([server.port], CLIENTS) as clients,
    ):
        client.wait_for_task(str(client.commit_session("warm").task_id))
        load.run_clients(clients, requests, scale.appends_phase_seconds)
        alone = [load.run_clients(clients, requests, scale.appends_alone_seconds / 2)]
        cpu, started = process.cpu_seconds(server.pid), time.perf_counter()
        with_commits, during = _with_commits(requests, sessions), list[LoadResult]()
        while len(tasks := _committed(during)) < sessions:
            during.append(load.run_clients(clients, with_commits, scale.appends_phase_seconds))
        while tasks and time.perf_counter() - started < MAX_SECONDS:
            during.append(load.run_clients(clients, requests, scale.appends_phase_seconds))
            while tasks and client.get_task(tasks[0]).status == "completed":
                tasks.popleft()
        seconds, cpu = time.perf_counter() - started, process.cpu_seconds(server.pid) - cpu
        alone.append(load.run_clients(clients, requests, scale.appends_alone_seconds / 2))
    if tasks:
        raise AssertionError(f"{len(tasks)} commits were not done after {seconds:.0f} s")
    health = sorted(wall for result in during for wall, sent in _timed(result) if sent is HEALTH)
    return Run(_series(alone), _series(during), quantile(health, 0.99), seconds, cpu)


def _prepare(folder: Path, sessions: int) -> None:
    source = [message for conversation in CONVERSATIONS for message in conversation.messages]
    with holdfast.connect(folder, settings=holdfast.Settings(worker_threads=0)) as client:
        for name in ("warm", *(f"s{number}" for number in range(sessions))):
            messages = [{**source[place % len(source)], "id": f"{name}-{place}"} for place in range(MESSAGES)]
            client.batch_add_messages(name, messages)


def _requests() -> Iterator[bytes]:
    texts = Texts(seed=13).several(2_000)
    appends = [
        load.request(
            "POST",
            f"/api/v1/sessions/appended-{number % 100}/messages",
            msgspec.json.encode({"role": "user", "content": text}),
        )
        for number, text in enumerate(texts)
    ]
    for number, append in enumerate(cycle(appends)):
        yield HEALTH if number % APPENDS_PER_HEALTH_CHECK == 0 else append


def _with_commits(requests: Iterator[bytes], sessions: int) -> Iterator[bytes]:
    """Every second request commits a session, until all are."""
    for number in range(sessions):
        yield next(requests)
        yield load.request("POST", f"/api/v1/sessions/s{number}/commit", b"{}")
    yield from requests


def _committed(results: list[LoadResult]) -> deque[str]:
    """Return the tasks of the commits."""
    bodies = [
        body
        for result in results
        for body, (_, sent) in zip(result.responses, _timed(result), strict=True)
        if COMMIT in sent
    ]
    return deque(msgspec.json.decode(body)["result"]["task_id"] for body in bodies)


def _timed(result: LoadResult) -> Iterator[tuple[float, bytes]]:
    return zip(result.durations, result.requests, strict=True)


def _series(results: list[LoadResult]) -> Series:
    return join_series(
        [
            Series([wall for wall, sent in _timed(each) if sent is not HEALTH and COMMIT not in sent], 0.0)
            for each in results
        ]
    )
