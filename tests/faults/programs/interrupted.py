"""A program whose main thread is interrupted repeatedly, as by Ctrl-C, while it and other threads append."""

import random
import signal
import sys
import threading
from types import FrameType

import holdfast
from holdfast.testing.faults.workload import Append, attempt
from holdfast.testing.faults.writer import report

INTERRUPTS = 800


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def append_until(client: holdfast.Client, writer: str, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 4  # one text message each
        attempt(client, Append("chat", writer, number), report)


def append_interrupted(client: holdfast.Client, rng: random.Random, number: int) -> int:
    """Append until the interrupt, and return the number of the last call."""
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0001, 0.002))
        while True:
            number += 4
            attempt(client, Append("chat", "main", number, keyed=True), report)
            client.get_session("chat")
    except KeyboardInterrupt:
        return number


def main() -> None:
    signal.signal(signal.SIGALRM, interrupt)
    stop = threading.Event()
    rng = random.Random(0)
    with holdfast.connect(sys.argv[1]) as client:
        client.create_session("chat")
        threads = [threading.Thread(target=append_until, args=(client, writer, stop)) for writer in ("a", "b")]
        for thread in threads:
            thread.start()
        number = 0
        for _ in range(INTERRUPTS):
            number = append_interrupted(client, rng, number)
        stop.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
