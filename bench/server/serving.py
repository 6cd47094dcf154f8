"""Appends over HTTP against an echo on the same stack, in turn with it, and what it takes to start a server."""

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
from measure import Figure, Series, at_least, at_most, joined, settle, summary
from scale import Setup
from server import load, process
from server.load import Exchange
from server.process import Started
from texts import Texts

NEEDED = ("starlette", "uvicorn", "uvloop", "httptools")
ECHO = [sys.executable, str(Path(__file__).with_name("echo.py"))]
HOLDFAST = [sys.executable, "-m", "holdfast", "serve", "--host", "127.0.0.1", "--port", "0", "--path"]

TEXTS = 2_000
"""Requests are built before and sent again from the first when the last was sent."""
WARM_UP_SECONDS = 0.1
PAGE = 10_000


class Workload(msgspec.Struct, frozen=True):
    """Clients that append to sessions of their own, and the share of the echo's rate that they must reach."""

    clients: int
    sessions: list[str]
    share: float

    @property
    def work(self) -> str:
        return f"{self.clients} clients, {len(self.sessions)} session{'s' * (len(self.sessions) > 1)}"


WORKLOADS = [
    Workload(8, [f"eight-{number:03}" for number in range(200)], 0.22),
    Workload(64, [f"crowd-{number:03}" for number in range(200)], 0.32),
    Workload(8, ["one"], 0.2),
]


class Phase(msgspec.Struct, frozen=True):
    """Some seconds of requests, the CPU time that the server took for them, and its memory behind them."""

    exchange: Exchange
    cpu: float
    resident_bytes: int

    @property
    def rate(self) -> float:
        return len(self.exchange.walls) / self.exchange.seconds


class Lane(msgspec.Struct):
    """Clients of one server, and what became of all that they asked."""

    server: Started
    clients: int
    requests: Iterator[bytes]
    phases: list[Phase] = []
    unmeasured: list[Exchange] = []

    def run(self, seconds: float) -> Phase:
        with load.connected(self.server.port, self.clients) as clients:
            self.unmeasured.append(load.exchange(clients, self.requests))  # a connection's first request costs more
            before = process.cpu_seconds(self.server.pid)
            exchange = load.exchange(clients, self.requests, seconds)
            cpu = process.cpu_seconds(self.server.pid) - before
        return Phase(exchange, cpu, process.resident_bytes(self.server.pid))

    @property
    def exchanges(self) -> list[Exchange]:
        return self.unmeasured + [phase.exchange for phase in self.phases]

    @property
    def rate(self) -> float:
        return median(phase.rate for phase in self.phases)

    @property
    def series(self) -> Series:
        return joined([Series(phase.exchange.walls, phase.cpu) for phase in self.phases])


class Acknowledged(msgspec.Struct, frozen=True):
    session_id: str
    seq: int
    message_ids: list[str]


class Answer(msgspec.Struct, frozen=True):
    result: Acknowledged


def measure(setup: Setup) -> list[Figure]:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing or sys.platform != "linux":
        needed = f"pip install {' '.join(missing)}" if missing else "Linux, to see the CPU time of another process"
        setup.console.print(f"server: left out, for it needs: {needed}", highlight=False)
        return []
    return [*_appends(setup), _startup(setup)]


def _appends(setup: Setup) -> list[Figure]:
    file = setup.folder / "holdfast.db"
    with holdfast.connect(file) as client:
        for session in (session for workload in WORKLOADS for session in workload.sessions):
            client.create_session(session)
    bodies = [msgspec.json.encode({"role": "user", "content": text}) for text in Texts(seed=5).several(TEXTS)]
    with (
        process.serving(ECHO, setup.folder / "echo.log") as echo,
        process.serving([*HOLDFAST, str(setup.folder)], setup.folder / "holdfast.log") as ours,
    ):
        echoes = {
            clients: Lane(echo, clients, cycle([load.request("POST", "/echo", body) for body in bodies]))
            for clients in {workload.clients for workload in WORKLOADS}
        }
        lanes = [Lane(ours, workload.clients, _requests(workload, bodies)) for workload in WORKLOADS]
        _run(setup, [*echoes.values(), *lanes], file)
    return [
        _figure(workload, lane, echoes[workload.clients], _astray(file, workload.sessions, lane.exchanges))
        for workload, lane in zip(WORKLOADS, lanes, strict=True)
    ]


def _run(setup: Setup, lanes: Sequence[Lane], file: Path) -> None:
    """All lanes in turn, round by round, every second round backwards."""
    for lane in lanes:
        lane.unmeasured.append(lane.run(WARM_UP_SECONDS).exchange)
    raw.wrap_log(file)
    settle()
    with setup.progress() as progress:
        for number in progress.track(range(setup.scale.server_rounds), description="echo and appends over HTTP"):
            for lane in lanes if number % 2 == 0 else reversed(lanes):
                lane.phases.append(lane.run(setup.scale.server_seconds))


def _requests(workload: Workload, bodies: Sequence[bytes]) -> Iterator[bytes]:
    paths = cycle([f"/api/v1/sessions/{session}/messages" for session in workload.sessions])
    return cycle([load.request("POST", next(paths), body) for body in bodies])


def _figure(workload: Workload, lane: Lane, echo: Lane, astray: int) -> Figure:
    ours, baseline = summary(lane.series), summary(echo.series)
    rate, cpu = lane.rate / echo.rate, ours.cpu / baseline.cpu
    busy = sum(phase.cpu for phase in echo.phases) / sum(phase.exchange.seconds for phase in echo.phases)
    own = sum(phase.exchange.cpu for phase in echo.phases) / baseline.count
    note = (
        f"{workload.work}: {lane.rate:,.0f} appends/s, the echo {echo.rate:,.0f}/s at {busy:.0%} of a core;"
        f" CPU {cpu:.2f}x of its {baseline.cpu * 1e6:.0f} µs (a client's own {own * 1e6:.0f} µs apart);"
        f" {astray} messages lost, doubled or misplaced"
    )
    return Figure(
        work=workload.work,
        ours=ours,
        against="HTTP echo (rates)",
        baseline=baseline,
        ratio=rate,
        checks=[
            at_least(workload.share, rate, f"≥ {workload.share}x"),
            at_most(4.5, cpu, "CPU ≤ 4.5x"),
            at_most(0, astray, "none astray"),
        ],
        notes=[note],
        more={
            "rate": lane.rate,
            "echo_rate": echo.rate,
            "cpu_ratio": cpu,
            "echo_busy": busy,
            "client_cpu": own,
            "megabytes": lane.phases[-1].resident_bytes / 1e6,
        },
    )


def _astray(file: Path, sessions: Sequence[str], exchanges: Sequence[Exchange]) -> int:
    """How many messages are lost, doubled, or not at the place in their session that was acknowledged."""
    promised: dict[str, Counter[tuple[int, str, str]]] = defaultdict(Counter)
    decoder = msgspec.json.Decoder(Answer)
    for exchange in exchanges:
        for asked, answer in zip(exchange.asked, exchange.answers, strict=True):
            result = decoder.decode(answer).result
            text = msgspec.json.decode(load.body_of(asked))["content"]
            promised[result.session_id][result.seq, result.message_ids[0], text] += 1
    with holdfast.connect(file) as client:
        return sum(_differences(client, session, promised[session]) for session in {*sessions, *promised})


def _differences(client: holdfast.Client, session: str, promised: Counter[tuple[int, str, str]]) -> int:
    stored: list[tuple[int, str, str]] = []
    first: int | None = 1
    while first is not None:
        page = client.get_messages(session, first=first, limit=PAGE)
        stored += [(message.seq, message.id, message.text) for message in page.messages]
        first = page.next_seq
    gaps = sum(place != seq for place, (seq, _, _) in enumerate(stored, 1))
    kept = Counter(stored)
    return gaps + (promised - kept).total() + (kept - promised).total()


def _startup(setup: Setup) -> Figure:
    echoes: list[Started] = []
    starts: list[Started] = []
    for number in range(setup.scale.startups):
        with process.serving(ECHO, setup.folder / "echo.log") as echo:
            echoes.append(echo)
        with process.serving([*HOLDFAST, str(setup.folder / f"{number}")], setup.folder / "holdfast.log") as start:
            starts.append(start)
    ours, baseline = (
        summary(Series([start.wall for start in several], sum(start.cpu for start in several)))
        for several in (starts, echoes)
    )
    cpu, memory = median(start.cpu for start in starts), max(start.idle_bytes for start in starts) / 1e6
    note = (
        f"serve: {cpu:.2f} s CPU and {memory:.0f} MB to the first healthy answer;"
        f" the echo {median(echo.cpu for echo in echoes):.2f} s"
        f" and {max(echo.idle_bytes for echo in echoes) / 1e6:.0f} MB"
    )
    return Figure(
        work="holdfast serve, to health",
        ours=ours,
        against="HTTP echo, to health",
        baseline=baseline,
        ratio=ours.p50 / baseline.p50,
        checks=[at_most(1.0, cpu, "< 1 s CPU"), at_most(90, memory, "< 90 MB")],
        notes=[note],
        more={"idle_megabytes": memory},
    )
