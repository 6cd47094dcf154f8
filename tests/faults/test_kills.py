"""Writers that die by SIGKILL, and others that go on."""

import random
import time
from contextlib import AbstractContextManager, ExitStack

from holdfast.testing.faults.processes import Teller, writing
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import Ledger
from holdfast.testing.faults.writer import Orders


def restarted(target: str, ledger: Ledger, writer: str, *, keyed: bool) -> AbstractContextManager[Teller]:
    """A writer that goes on where it ended: with keys at the call that got no answer, without them behind it."""
    settled = ledger.acknowledged if keyed else ledger.tried
    numbers = [append.number for word, append in ledger.tried.items() if append.writer == writer and word in settled]
    first = max(numbers, default=0) + 1
    return writing(ledger, Orders(target=target, writer=writer, sessions=["chat"], first=first, keyed=keyed))


def test_every_acknowledged_message_survives_kill_9(target: str) -> None:
    for seed in range(5 if "://" in target else 10):
        draw = random.Random(seed)
        ledger = Ledger()  # the database stays, each round has sessions of its own in it
        orders = Orders(target=target, writer=f"r{seed}", sessions=[f"one{seed}", f"two{seed}"], threads=4)
        with writing(ledger, orders) as writer:
            writer.wait_for(acknowledged=draw.randint(1, 40))
            time.sleep(draw.uniform(0, 0.02))
            writer.kill()
        verify(target, ledger)


def test_a_retry_after_kill_9_leaves_the_message_there_exactly_once(target: str) -> None:
    ledger = Ledger()
    for seed in range(4):
        draw = random.Random(seed)
        with restarted(target, ledger, "careful", keyed=True) as writer:
            writer.wait_for(acknowledged=draw.randint(2, 20))
            time.sleep(draw.uniform(0, 0.005))
            writer.kill()
    before = {append.word for append in ledger.unanswered()}
    with restarted(target, ledger, "careful", keyed=True) as writer:
        writer.wait_for(acknowledged=1)
        writer.kill()
    assert not before & {append.word for append in ledger.unanswered()}
    verify(target, ledger)


def test_two_writers_are_killed_and_restarted_while_the_other_goes_on(target: str) -> None:
    ledger = Ledger()
    for seed in range(2):
        draw = random.Random(seed)
        with ExitStack() as stack:

            def start(name: str, stack: ExitStack = stack) -> Teller:
                return stack.enter_context(restarted(target, ledger, name, keyed=name == "careful"))

            writers = {name: start(name) for name in ("careful", "plain")}
            for victim in draw.sample(sorted(writers), 2):
                writers[victim].wait_for(acknowledged=draw.randint(3, 15))
                writers[victim].kill()
                writers[victim] = start(victim)
            for writer in writers.values():
                writer.wait_for(acknowledged=draw.randint(1, 10))
            for writer in writers.values():
                writer.kill()
        verify(target, ledger)
