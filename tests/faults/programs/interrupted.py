"""A program whose main thread is interrupted again and again, as by Ctrl-C, while it and others append."""

import random
import signal
import sys
import threading
from types import FrameType

import holdfast
from holdfast.testing.faults.workload import Append, attempt
from holdfast.testing.faults.writer import tell

INTERRUPTS = 800


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def append_others(client: holdfast.Client, writer: str, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 4  # the simplest shape
        attempt(client, Append("chat", writer, number), tell)


def append_interrupted(client: holdfast.Client, draw: random.Random, number: int) -> int:
    """Until the interrupt comes; the number of the last call."""
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0001, 0.002))
        while True:
            number += 4
            attempt(client, Append("chat", "main", number, keyed=True), tell)
            client.get_session("chat")
    except KeyboardInterrupt:
        return number


def main() -> None:
    signal.signal(signal.SIGALRM, interrupt)
    stop = threading.Event()
    draw = random.Random(0)
    with holdfast.connect(sys.argv[1]) as client:
        client.create_session("chat")
        threads = [threading.Thread(target=append_others, args=(client, writer, stop)) for writer in ("a", "b")]
        for thread in threads:
            thread.start()
        number = 0
        for _ in range(INTERRUPTS):
            number = append_interrupted(client, draw, number)
        stop.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
