"""A program that appends and reports each event in a line: `python -m holdfast.testing.faults.writer OPTIONS`.

A line is written in one system call, so that a kill leaves no partial lines. "acknowledged" is written after the
call has returned, so its messages must be stored.
"""

import os
import sys
import threading

import msgspec

from holdfast.client.sync.client import Client, connect
from holdfast.testing.faults.workload import Append, Event, attempt

ATTEMPTS = 10


class WriterOptions(msgspec.Struct, frozen=True, kw_only=True):
    target: str
    writer: str
    sessions: list[str]
    """Each thread appends to them in turn."""
    first: int = 1
    count: int = 1_000_000
    threads: int = 1
    keyed: bool = False
    """Whether calls have keys. Failed calls with a key are retried."""


def report(event: Event) -> None:
    os.write(1, msgspec.json.encode(event) + b"\n")


def write(client: Client, options: WriterOptions, thread: int = 0) -> None:
    name = f"{options.writer}t{thread}" if options.threads > 1 else options.writer
    for number in range(options.first, options.first + options.count):
        session_id = options.sessions[(number + thread) % len(options.sessions)]
        append = Append(session_id, name, number, options.keyed)
        for _ in range(ATTEMPTS if options.keyed else 1):
            if attempt(client, append, report):
                break


def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=WriterOptions)
    with connect(options.target) as client:
        threads = [threading.Thread(target=write, args=(client, options, number)) for number in range(options.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
