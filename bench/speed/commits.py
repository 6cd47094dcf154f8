"""The commit call, the time until it is done, the context after it, and appends during commits."""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import holdfast
import raw
from conversations import CONVERSATIONS
from holdfast.client.sync.client import Client
from holdfast.testing.model import running_model
from measure import (
    Check,
    Figure,
    Series,
    check_at_least,
    check_at_most,
    compute_statistics,
    freeze_heap,
    time_interleaved,
)
from scale import Setup
from texts import Texts

BATCH = 100


def measure(setup: Setup) -> list[Figure]:
    return [
        *_measure_calls(setup),
        *_measure_until_done(setup),
        _measure_context(setup),
        _measure_appends_during_commits(setup),
    ]


def _measure_calls(setup: Setup) -> list[Figure]:
    """Measure the call alone, without background work."""
    rounds, live_count = setup.scale.commit_rounds, setup.scale.live_messages
    texts = Texts(seed=7)
    log = raw.connect_insert_log(setup.folder / "raw.db")
    no_workers = holdfast.Settings(worker_threads=0)
    body, long_count = texts.one(), live_count * setup.scale.long_commit_factor
    with holdfast.connect(setup.folder / "calls.db", settings=no_workers) as client:
        for number in range(rounds):
            _fill(client, f"short-{number}", texts, live_count)
        for number in range(setup.scale.long_commit_rounds):
            _fill(client, f"long-{number}", texts, long_count)
        for name in ("raw.db", "calls.db"):
            raw.fill_wal(setup.folder / name)
        short, inserts = map(
            compute_statistics,
            time_interleaved(
                rounds,
                lambda number: client.commit_session(f"short-{number}"),
                lambda _: log.execute("INSERT INTO raw (body) VALUES (?)", (body,)),
            ),
        )
        long = compute_statistics(
            time_interleaved(setup.scale.long_commit_rounds, lambda number: client.commit_session(f"long-{number}"))[0]
        )
    log.close()
    ratio = short.p50 / inserts.p50
    growth = long.p50 / short.p50
    return [
        Figure(
            name=f"the call: commit {live_count} live messages",
            measured=short,
            baseline_name="a raw WAL+FULL insert",
            baseline=inserts,
            ratio=ratio,
            checks=[check_at_most(5.0, ratio, "≤ 5x")],
        ),
        Figure(
            name=f"the call: commit {long_count:,} live messages",
            measured=long,
            baseline_name=f"one of {live_count}",
            baseline=short,
            ratio=growth,
            checks=[check_at_most(1.5, growth, "≤ 1.5x")],
        ),
    ]


def _measure_until_done(setup: Setup) -> list[Figure]:
    figures, live_count = [], setup.scale.live_messages
    for summariser in ("local", "model"):
        with ExitStack() as stack:
            settings = holdfast.Settings()
            if summariser == "model":
                model = stack.enter_context(running_model())
                settings = holdfast.Settings(
                    model_provider="openai", model_name="fake", model_base_url=model.url, model_api_key="none"
                )
            client = stack.enter_context(holdfast.connect(setup.folder / f"{summariser}.db", settings=settings))
            calls_client = stack.enter_context(
                holdfast.connect(setup.folder / f"{summariser}-calls.db", settings=holdfast.Settings(worker_threads=0))
            )
            rounds = setup.scale.commit_until_done_rounds
            for number in range(rounds + 1):
                _add_conversation(client, f"s{number}", live_count)
                _add_conversation(calls_client, f"s{number}", live_count)

            def commit_and_wait(number: int, client: Client = client) -> None:
                task = client.wait_for_task(str(client.commit_session(f"s{number}").task_id))
                if task.status != "completed":
                    raise AssertionError(task.error)

            measured, calls = map(
                compute_statistics,
                time_interleaved(
                    rounds,
                    commit_and_wait,
                    lambda number, client=calls_client: client.commit_session(f"s{number}"),  # type: ignore[misc]
                    warm_up=1,
                ),
            )
        figures.append(
            Figure(
                name=f"commit {live_count} messages until done, "
                + ("no model" if summariser == "local" else "0-ms model"),
                measured=measured,
                baseline_name="the call alone",
                baseline=calls,
                ratio=measured.p50 / calls.p50,
                checks=[check_at_most(0.5, measured.p50, "< 0.5 s")],
            )
        )
    return figures


def _measure_context(setup: Setup) -> Figure:
    texts = Texts(seed=9)
    with holdfast.connect(setup.folder / "context.db") as client:
        for _ in range(setup.scale.archives):
            _fill(client, "s", texts, 10)
            client.wait_for_task(str(client.commit_session("s").task_id))
        _fill(client, "s", texts, 1_000)
        _fill(client, "alone", texts, 1_000)
        measured, baseline = map(
            compute_statistics,
            time_interleaved(
                setup.scale.read_rounds,
                lambda _: client.get_session_context("s"),
                lambda _: client.get_messages("alone", limit=1_000),
                warm_up=10,
            ),
        )
    ratio = measured.p50 / baseline.p50
    return Figure(
        name=f"context: {setup.scale.archives} archives, 1,000 live",
        measured=measured,
        baseline_name="reading 1,000 messages",
        baseline=baseline,
        ratio=ratio,
        checks=[check_at_most(1.5, ratio, "≤ 1.5x")],
    )


def _measure_appends_during_commits(setup: Setup) -> Figure:
    """Measure appends of one thread, alone and while many sessions are committed."""
    sessions = setup.scale.committing_sessions
    texts = Texts(seed=11)
    with holdfast.connect(setup.folder / "during.db") as client:
        for number in range(sessions):
            _add_conversation(client, f"s{number}", 50)
        client.wait_for_task(str(client.commit_session(_add_warm_up_session(client)).task_id))
        alone = _append_repeatedly(client, texts, lambda: False, seconds=setup.scale.thread_seconds)
        started = time.perf_counter()
        tasks = [str(client.commit_session(f"s{number}").task_id) for number in range(sessions)]
        finished = threading.Event()

        def wait() -> None:
            for task in tasks:
                client.wait_for_task(task, 120)
            finished.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        during = _append_repeatedly(client, texts, finished.is_set, seconds=120.0)
        waiting.join()
        took = time.perf_counter() - started
        unfinished = [task for task in tasks if client.get_task(task).status != "completed"]
    rate_alone, rate_during = len(alone.wall) / sum(alone.wall), len(during.wall) / sum(during.wall)
    share = rate_during / rate_alone
    note = (
        f"{sessions} commits of 50 messages took {took:.1f} s; {rate_during:,.0f} appends/s during them,"
        f" {rate_alone:,.0f}/s alone"
    )
    return Figure(
        name=f"appends while {sessions} sessions are committed",
        measured=compute_statistics(during),
        baseline_name="appends alone",
        baseline=compute_statistics(alone),
        ratio=share,
        checks=[
            check_at_least(0.5, share, "≥ 0.5 of the rate"),
            Check("all done", float(len(unfinished)), not unfinished),
        ],
        notes=[note],
    )


def _append_repeatedly(client: Client, texts: Texts, is_over: Callable[[], bool], *, seconds: float) -> Series:
    wall: list[float] = []
    freeze_heap()
    cpu, until = time.thread_time(), time.perf_counter() + seconds
    while time.perf_counter() < until and not is_over():
        text = texts.one()
        before = time.perf_counter()
        client.add_message("appended", "user", text)
        wall.append(time.perf_counter() - before)
    return Series(wall, time.thread_time() - cpu)


def _add_warm_up_session(client: Client) -> str:
    _add_conversation(client, "warm", 10)
    return "warm"


def _fill(client: Client, session: str, texts: Texts, count: int) -> None:
    remaining = count
    while remaining > 0:
        batch = texts.several(min(remaining, BATCH))
        client.batch_add_messages(session, [{"role": "user", "content": text} for text in batch])
        remaining -= len(batch)


def _add_conversation(client: Client, session: str, count: int) -> None:
    """Add messages of the test conversations, one after another, with ids that make them unique."""
    source = [message for conversation in CONVERSATIONS for message in conversation.messages]
    messages = [{**source[place % len(source)], "id": f"{session}-{place}"} for place in range(count)]
    for start in range(0, count, BATCH):
        client.batch_add_messages(session, messages[start : start + BATCH])
