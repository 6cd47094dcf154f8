"""A program that ends while threads that nobody waits for are appending, and that never closes its client."""

import itertools
import sys
import threading

import holdfast
from holdfast.testing.faults.workload import Append, attempt
from holdfast.testing.faults.writer import tell


def append(client: holdfast.Client, writer: str, begun: threading.Event) -> None:
    for number in itertools.count(1):
        try:
            attempt(client, Append("chat", writer, number, keyed=writer == "a"), tell)
        except holdfast.errors.FailedPreconditionError:  # closed by the exit
            return
        if number == 5:
            begun.set()


def main() -> None:
    client = holdfast.connect(sys.argv[1])
    begun = [threading.Event() for _ in "abc"]
    for writer, event in zip("abc", begun, strict=True):
        threading.Thread(target=append, args=(client, writer, event), daemon=True).start()
    for event in begun:
        event.wait(30)


if __name__ == "__main__":
    main()
