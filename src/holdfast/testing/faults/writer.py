"""A program that appends and tells what it does, a line per event: `python -m holdfast.testing.faults.writer ORDERS`.

A line goes out in one system call, so that whoever kills the program reads whole lines or none. It is written after
the call has returned: a line "acknowledged" that was read is a promise that must hold.
"""

import os
import sys
import threading

import msgspec

from holdfast.client.sync.client import Client, connect
from holdfast.testing.faults.workload import Append, Event, attempt

TRIES = 10


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    target: str
    writer: str
    sessions: list[str]
    """Each thread appends to one of them in turn."""
    first: int = 1
    count: int = 1_000_000
    threads: int = 1
    keyed: bool = False
    """With keys, a call that failed is made again; without, it is given up."""


def tell(event: Event) -> None:
    os.write(1, msgspec.json.encode(event) + b"\n")


def write(client: Client, orders: Orders, thread: int = 0) -> None:
    name = f"{orders.writer}t{thread}" if orders.threads > 1 else orders.writer
    for number in range(orders.first, orders.first + orders.count):
        session_id = orders.sessions[(number + thread) % len(orders.sessions)]
        append = Append(session_id, name, number, orders.keyed)
        for _ in range(TRIES if orders.keyed else 1):
            if attempt(client, append, tell):
                break


def main() -> None:
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    with connect(orders.target) as client:
        threads = [threading.Thread(target=write, args=(client, orders, number)) for number in range(orders.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
