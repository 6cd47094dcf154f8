"""Many threads on many sessions, compared with one thread and with a loop that commits statements in groups."""

import threading
import time
from collections.abc import Sequence

import apsw
import msgspec

import holdfast
import raw
from measure import Figure, Series, check_at_least, check_at_most, compute_statistics, freeze_heap, join_series
from raw import Statement
from scale import Setup
from texts import Texts

THREADS = 64
SESSIONS = [f"session-{number:03}" for number in range(200)]
TEXTS_PER_THREAD = 200


class Phase(msgspec.Struct, frozen=True):
    """A period in which all threads append: its length, and the duration of every append."""

    seconds: float
    series: Series


def measure(setup: Setup) -> list[Figure]:
    scale = setup.scale
    texts = Texts(seed=3)
    prepared = [texts.several(TEXTS_PER_THREAD) for _ in range(THREADS)]
    per_round = scale.raw_sql_batches * THREADS
    recording = raw.record_appends(
        [(SESSIONS[number % len(SESSIONS)], texts.one()) for number in range(per_round * scale.thread_rounds)]
    )
    groups = _group_statements(recording.appends)
    raw_connection = raw.connect(setup.folder / "raw.db")
    raw.replay(raw_connection, recording.opening)
    singles: list[Phase] = []
    many: list[Phase] = []
    raw_seconds = 0.0
    with holdfast.connect(setup.folder / "holdfast.db") as client, setup.progress() as progress:
        for session in SESSIONS:
            client.create_session(session)
        for name in ("raw.db", "holdfast.db"):
            raw.fill_wal(setup.folder / name)
        _run_threads(client, prepared[:1], 0.1)
        freeze_heap()
        for number in progress.track(range(scale.thread_rounds), description=f"{THREADS} threads, then one"):
            many.append(_run_threads(client, prepared, scale.thread_seconds))
            singles.append(_run_threads(client, prepared[:1], scale.thread_seconds))
            first = number * scale.raw_sql_batches
            raw_seconds += _commit_in_groups(raw_connection, groups[first : first + scale.raw_sql_batches])
    raw_connection.close()
    return [_figure(many, singles, per_round * scale.thread_rounds / raw_seconds)]


def _figure(many: list[Phase], singles: list[Phase], raw_rate: float) -> Figure:
    measured, baseline = (
        compute_statistics(join_series([phase.series for phase in phases])) for phases in (many, singles)
    )
    rate, single_rate = _rate(many), _rate(singles)
    note = (
        f"threads: {rate:,.0f} appends/s, one thread {single_rate:,.0f}/s; {rate / raw_rate:.0%} of a raw loop"
        f" that commits the same statements in groups of {THREADS} ({raw_rate:,.0f}/s)"
    )
    return Figure(
        name=f"{THREADS} threads, {len(SESSIONS)} sessions",
        measured=measured,
        baseline_name="one thread (ratio of rates)",
        baseline=baseline,
        ratio=rate / single_rate,
        checks=[
            check_at_least(2.0, rate / single_rate, "≥ 2x"),
            check_at_most(0.1, measured.p99, "p99 < 100 ms"),
        ],
        notes=[note],
        extra_values={
            "rate": rate,
            "single_rate": single_rate,
            "raw_group_rate": raw_rate,
            "raw_share": rate / raw_rate,
        },
    )


def _run_threads(client: holdfast.Client, texts: Sequence[Sequence[str]], seconds: float) -> Phase:
    """Run one thread per list of texts. Each appends to the sessions in turn for some seconds."""
    durations: list[list[float]] = [[] for _ in texts]
    start = threading.Barrier(len(texts) + 1)
    stop = threading.Event()

    def append(thread: int) -> None:
        own_texts, own_durations = texts[thread], durations[thread]
        start.wait()
        number = thread
        while not stop.is_set():
            began = time.perf_counter()
            client.add_message(SESSIONS[number % len(SESSIONS)], "user", own_texts[number % len(own_texts)])
            own_durations.append(time.perf_counter() - began)
            number += 1

    threads = [threading.Thread(target=append, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    start.wait()
    began, cpu = time.perf_counter(), time.process_time()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    return Phase(elapsed, Series([duration for own_durations in durations for duration in own_durations], cpu))


def _group_statements(appends: Sequence[Sequence[Statement]]) -> list[list[Statement]]:
    """Group the statements of `THREADS` appends each, without their transactions."""
    return [
        [statement for append in appends[first : first + THREADS] for statement in raw.without_transaction(append)]
        for first in range(0, len(appends), THREADS)
    ]


def _commit_in_groups(connection: apsw.Connection, groups: Sequence[Sequence[Statement]]) -> float:
    began = time.perf_counter()
    for group in groups:
        connection.execute("BEGIN IMMEDIATE")
        raw.replay(connection, group)
        connection.execute("COMMIT")
    return time.perf_counter() - began


def _rate(phases: Sequence[Phase]) -> float:
    return sum(len(phase.series.wall) for phase in phases) / sum(phase.seconds for phase in phases)
