"""Appends over HTTP and the start of a server, compared with an echo server on the same stack."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from statistics import median

import msgspec

import holdfast
import raw
from measure import Figure, Series, check_at_least, check_at_most, compute_statistics, freeze_heap, join_series
from scale import Setup
from server import load, process
from server.load import LoadResult
from server.process import StartedServer
from texts import Texts

REQUIRED_MODULES = ("starlette", "uvicorn", "uvloop", "httptools")
ECHO = [sys.executable, str(Path(__file__).with_name("echo.py"))]
HOLDFAST = [sys.executable, "-m", "holdfast", "serve", "--host", "127.0.0.1", "--port", "0", "--path"]

TEXTS = 2_000
"""Requests are built in advance and repeated."""
WARM_UP_SECONDS = 0.1
PAGE = 10_000


class Workload(msgspec.Struct, frozen=True):
    """Clients and their sessions, and the share of the echo server's rate that is their target."""

    clients: int
    sessions: list[str]
    share: float

    @property
    def name(self) -> str:
        return f"{self.clients} clients, {len(self.sessions)} session{'s' * (len(self.sessions) > 1)}"


WORKLOADS = [
    Workload(8, [f"eight-{number:03}" for number in range(200)], 0.22),
    Workload(64, [f"sixty-four-{number:03}" for number in range(200)], 0.32),
    Workload(8, ["one"], 0.2),
]


class Phase(msgspec.Struct, frozen=True):
    """Some seconds of requests, with the server's CPU time for them and its memory after them."""

    result: LoadResult
    cpu: float
    resident_bytes: int

    @property
    def rate(self) -> float:
        return len(self.result.durations) / self.result.seconds


class ClientGroup(msgspec.Struct):
    """Clients, divided among servers, and the results of all their requests."""

    servers: list[StartedServer]
    clients: int
    requests: Iterator[bytes]
    phases: list[Phase] = []
    unmeasured: list[LoadResult] = []

    def run(self, seconds: float) -> Phase:
        with load.connected([server.port for server in self.servers], self.clients) as clients:
            self.unmeasured.append(load.run_clients(clients, self.requests))  # a connection's first request costs more
            before = self._cpu_seconds()
            result = load.run_clients(clients, self.requests, seconds)
            cpu = self._cpu_seconds() - before
        return Phase(result, cpu, sum(process.resident_bytes(server.pid) for server in self.servers))

    def _cpu_seconds(self) -> float:
        return sum(process.cpu_seconds(server.pid) for server in self.servers)

    @property
    def results(self) -> list[LoadResult]:
        return self.unmeasured + [phase.result for phase in self.phases]

    @property
    def rate(self) -> float:
        return median(phase.rate for phase in self.phases)

    @property
    def series(self) -> Series:
        return join_series([Series(phase.result.durations, phase.cpu) for phase in self.phases])


class Acknowledged(msgspec.Struct, frozen=True):
    session_id: str
    seq: int
    message_ids: list[str]


class Envelope(msgspec.Struct, frozen=True):
    result: Acknowledged


def can_run_servers(setup: Setup, part: str) -> bool:
    """Whether this machine can run the measurements of servers. If not, print what they require."""
    missing = [name for name in REQUIRED_MODULES if find_spec(name) is None]
    if missing or sys.platform != "linux":
        needed = f"pip install {' '.join(missing)}" if missing else "Linux, to read the CPU time of another process"
        setup.console.print(f"{part}: skipped; appends over HTTP require: {needed}", highlight=False)
        return False
    return True


def measure(setup: Setup) -> list[Figure]:
    return [*_appends(setup), _startup(setup)] if can_run_servers(setup, "server") else []


def _appends(setup: Setup) -> list[Figure]:
    file = setup.folder / "holdfast.db"
    with holdfast.connect(file) as client:
        for session in (session for workload in WORKLOADS for session in workload.sessions):
            client.create_session(session)
    bodies = [msgspec.json.encode({"role": "user", "content": text}) for text in Texts(seed=5).several(TEXTS)]
    with (
        process.run_server(ECHO, setup.folder / "echo.log") as echo,
        process.run_server([*HOLDFAST, str(setup.folder)], setup.folder / "holdfast.log") as server,
    ):
        echoes = {
            clients: ClientGroup([echo], clients, cycle([load.request("POST", "/echo", body) for body in bodies]))
            for clients in {workload.clients for workload in WORKLOADS}
        }
        groups = [ClientGroup([server], workload.clients, build_requests(workload, bodies)) for workload in WORKLOADS]
        _run(setup, [*echoes.values(), *groups], file)
    return [
        _figure(workload, group, echoes[workload.clients], _count_misplaced(file, workload.sessions, group.results))
        for workload, group in zip(WORKLOADS, groups, strict=True)
    ]


def _run(setup: Setup, groups: Sequence[ClientGroup], file: Path) -> None:
    """Run all groups in turn, round by round, every second round in reverse order."""
    for group in groups:
        group.unmeasured.append(group.run(WARM_UP_SECONDS).result)
    raw.fill_wal(file)
    freeze_heap()
    with setup.progress() as progress:
        for number in progress.track(range(setup.scale.server_rounds), description="echo and appends over HTTP"):
            for group in groups if number % 2 == 0 else reversed(groups):
                group.phases.append(group.run(setup.scale.server_seconds))


def build_requests(workload: Workload, bodies: Sequence[bytes]) -> Iterator[bytes]:
    paths = cycle([f"/api/v1/sessions/{session}/messages" for session in workload.sessions])
    return cycle([load.request("POST", next(paths), body) for body in bodies])


def _figure(workload: Workload, group: ClientGroup, echo: ClientGroup, misplaced: int) -> Figure:
    measured, baseline = compute_statistics(group.series), compute_statistics(echo.series)
    rate, cpu = group.rate / echo.rate, measured.cpu / baseline.cpu
    busy = sum(phase.cpu for phase in echo.phases) / sum(phase.result.seconds for phase in echo.phases)
    own = sum(phase.result.cpu for phase in echo.phases) / baseline.count
    note = (
        f"{workload.name}: {group.rate:,.0f} appends/s, the echo server {echo.rate:,.0f}/s at {busy:.0%} of a core;"
        f" CPU {cpu:.2f}x of its {baseline.cpu * 1e6:.0f} µs (without the client's {own * 1e6:.0f} µs);"
        f" {misplaced} messages lost, duplicated or misplaced"
    )
    return Figure(
        name=workload.name,
        measured=measured,
        baseline_name="HTTP echo (rates)",
        baseline=baseline,
        ratio=rate,
        checks=[
            check_at_least(workload.share, rate, f"≥ {workload.share}x"),
            check_at_most(4.5, cpu, "CPU ≤ 4.5x"),
            check_at_most(0, misplaced, "none lost"),
        ],
        notes=[note],
        extra_values={
            "rate": group.rate,
            "echo_rate": echo.rate,
            "cpu_ratio": cpu,
            "echo_busy": busy,
            "client_cpu": own,
            "megabytes": group.phases[-1].resident_bytes / 1e6,
        },
    )


def _count_misplaced(file: Path, sessions: Sequence[str], results: Sequence[LoadResult]) -> int:
    """Count the messages that are lost, duplicated, or not at their acknowledged place in the session."""
    acknowledged: dict[str, Counter[tuple[int, str, str]]] = defaultdict(Counter)
    decoder = msgspec.json.Decoder(Envelope)
    for load_result in results:
        for request, response in zip(load_result.requests, load_result.responses, strict=True):
            result = decoder.decode(response).result
            text = msgspec.json.decode(load.body_of(request))["content"]
            acknowledged[result.session_id][result.seq, result.message_ids[0], text] += 1
    with holdfast.connect(file) as client:
        return sum(_differences(client, session, acknowledged[session]) for session in {*sessions, *acknowledged})


def _differences(client: holdfast.Client, session: str, acknowledged: Counter[tuple[int, str, str]]) -> int:
    stored: list[tuple[int, str, str]] = []
    first: int | None = 1
    while first is not None:
        page = client.get_messages(session, first=first, limit=PAGE)
        stored += [(message.seq, message.id, message.text) for message in page.messages]
        first = page.next_seq
    gaps = sum(place != seq for place, (seq, _, _) in enumerate(stored, 1))
    counts = Counter(stored)
    return gaps + (acknowledged - counts).total() + (counts - acknowledged).total()


def _startup(setup: Setup) -> Figure:
    echoes: list[StartedServer] = []
    starts: list[StartedServer] = []
    for number in range(setup.scale.startups):
        with process.run_server(ECHO, setup.folder / "echo.log") as echo:
            echoes.append(echo)
        with process.run_server([*HOLDFAST, str(setup.folder / f"{number}")], setup.folder / "holdfast.log") as start:
            starts.append(start)
    measured, baseline = (
        compute_statistics(Series([start.wall for start in several], sum(start.cpu for start in several)))
        for several in (starts, echoes)
    )
    cpu, memory = median(start.cpu for start in starts), max(start.idle_bytes for start in starts) / 1e6
    note = (
        f"serve: {cpu:.2f} s CPU and {memory:.0f} MB to the first successful health check;"
        f" the echo server {median(echo.cpu for echo in echoes):.2f} s"
        f" and {max(echo.idle_bytes for echo in echoes) / 1e6:.0f} MB"
    )
    return Figure(
        name="holdfast serve, to health",
        measured=measured,
        baseline_name="HTTP echo, to health",
        baseline=baseline,
        ratio=measured.p50 / baseline.p50,
        checks=[check_at_most(1.0, cpu, "< 1 s CPU"), check_at_most(90, memory, "< 90 MB")],
        notes=[note],
        extra_values={"idle_megabytes": memory},
    )
