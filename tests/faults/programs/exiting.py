"""A program that exits while daemon threads are appending, without closing its client."""

import itertools
import sys
import threading

import holdfast
from holdfast.testing.faults.workload import Append, attempt
from holdfast.testing.faults.writer import report


def append(client: holdfast.Client, writer: str, started: threading.Event) -> None:
    for number in itertools.count(1):
        try:
            attempt(client, Append("chat", writer, number, keyed=writer == "a"), report)
        except holdfast.errors.FailedPreconditionError:  # the exit handler closed the client
            return
        if number == 5:
            started.set()


def main() -> None:
    client = holdfast.connect(sys.argv[1])
    started = [threading.Event() for _ in "abc"]
    for writer, event in zip("abc", started, strict=True):
        threading.Thread(target=append, args=(client, writer, event), daemon=True).start()
    for event in started:
        event.wait(30)


if __name__ == "__main__":
    main()
