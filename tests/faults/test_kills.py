"""Writers that are killed with SIGKILL while others continue."""

import random
import time
from contextlib import AbstractContextManager, ExitStack

from holdfast.testing.faults.processes import ReportingProcess, run_writer
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import AppendLog
from holdfast.testing.faults.writer import WriterOptions


def restart_writer(
    target: str, append_log: AppendLog, writer: str, *, keyed: bool
) -> AbstractContextManager[ReportingProcess]:
    """Start a writer where it stopped: with keys, at the unacknowledged call; without keys, after it."""
    finished = append_log.acknowledged if keyed else append_log.attempted
    numbers = [
        append.number for name, append in append_log.attempted.items() if append.writer == writer and name in finished
    ]
    first = max(numbers, default=0) + 1
    return run_writer(
        append_log, WriterOptions(target=target, writer=writer, sessions=["chat"], first=first, keyed=keyed)
    )


def test_every_acknowledged_message_survives_kill_9(target: str) -> None:
    for seed in range(5 if "://" in target else 10):
        rng = random.Random(seed)
        append_log = AppendLog()  # rounds share the database and use different sessions
        options = WriterOptions(target=target, writer=f"r{seed}", sessions=[f"one{seed}", f"two{seed}"], threads=4)
        with run_writer(append_log, options) as writer:
            writer.wait_for(acknowledged=rng.randint(1, 40))
            time.sleep(rng.uniform(0, 0.02))
            writer.kill()
        verify(target, append_log)


def test_a_retry_after_kill_9_stores_the_message_exactly_once(target: str) -> None:
    append_log = AppendLog()
    for seed in range(4):
        rng = random.Random(seed)
        with restart_writer(target, append_log, "careful", keyed=True) as writer:
            writer.wait_for(acknowledged=rng.randint(2, 20))
            time.sleep(rng.uniform(0, 0.005))
            writer.kill()
    before = {append.name for append in append_log.unacknowledged()}
    with restart_writer(target, append_log, "careful", keyed=True) as writer:
        writer.wait_for(acknowledged=1)
        writer.kill()
    assert not before & {append.name for append in append_log.unacknowledged()}
    verify(target, append_log)


def test_a_writer_can_be_killed_and_restarted_while_another_continues(target: str) -> None:
    append_log = AppendLog()
    for seed in range(2):
        rng = random.Random(seed)
        with ExitStack() as stack:

            def start(name: str, stack: ExitStack = stack) -> ReportingProcess:
                return stack.enter_context(restart_writer(target, append_log, name, keyed=name == "careful"))

            writers = {name: start(name) for name in ("careful", "plain")}
            for victim in rng.sample(sorted(writers), 2):
                writers[victim].wait_for(acknowledged=rng.randint(3, 15))
                writers[victim].kill()
                writers[victim] = start(victim)
            for writer in writers.values():
                writer.wait_for(acknowledged=rng.randint(1, 10))
            for writer in writers.values():
                writer.kill()
        verify(target, append_log)
