"""Jobs in the calling thread: one at a time, but not while one waits for a remote embedder."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import numpy as np

from holdfast.computing.job import Job, JobContext, no_vectors
from holdfast.computing.process import ProcessRunner
from holdfast.computing.runners import open_runner
from holdfast.computing.summaries import SUMMARISE, MessagesToSummarise
from holdfast.computing.thread import ThreadRunner
from holdfast.config import Settings
from holdfast.model.messages import Message
from holdfast.model.parts import TextPart
from holdfast.providers.static_vectors import StaticEmbedder

SECONDS = 30.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _embed(texts: list[str], context: JobContext) -> int:
    return len(context.embed(texts))


EMBED = Job[list[str], int]("embed", _embed, list[str], int)


def test_only_one_thread_computes_at_a_time() -> None:
    runner, running, most = ThreadRunner(), set[int](), list[int]()

    def count_running(number: int, _context: JobContext) -> None:
        running.add(number)
        threading.Event().wait(0.005)
        most.append(len(running))
        running.discard(number)

    job = Job[int, None]("count", count_running, int, type(None))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: runner.run(job, number, no_vectors), range(12)))
    assert set(most) == {1}


def test_a_job_that_waits_for_a_remote_embedder_lets_other_jobs_compute() -> None:
    runner, is_free = ThreadRunner(embeds_locally=False), threading.Event()

    def wait(texts: Sequence[str], _yield_cpu: object) -> Any:
        assert is_free.wait(SECONDS)
        return np.zeros((len(texts), 1))

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(runner.run, EMBED, ["a", "b"], wait)
        assert runner.run(EMBED, ["c"], lambda texts, _yield_cpu: texts) == 1
        is_free.set()
        assert waiting.result(SECONDS) == 2


def test_both_ways_of_computing_give_the_same_summary() -> None:
    texts = ["We decided to use port 8443.", "Never restart the server on Fridays.", "The deploy failed with code 137."]
    messages = [Message(f"m{seq}", "user", [TextPart(text)], NOW, seq, 10) for seq, text in enumerate(texts, 1)]
    to_summarise = MessagesToSummarise(messages)

    def embed(texts: Sequence[str], _yield_cpu: object) -> Any:
        return StaticEmbedder().embed(texts).vectors

    remote = Settings(compute="process", embedder="openai")
    summaries = []
    for settings in (Settings(compute="thread"), Settings(compute="process"), remote):
        with closing(open_runner(settings, lambda: 0)) as runner:
            assert isinstance(runner, ProcessRunner) == (settings.compute == "process")
            summaries.append(runner.run(SUMMARISE, to_summarise, embed))
    assert summaries[0] == summaries[1] == summaries[2]
    assert summaries[0].constraints
