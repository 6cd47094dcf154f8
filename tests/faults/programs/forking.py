"""A program that forks children while its threads append and read; children, too, append with the client they got."""

import multiprocessing
import os
import signal
import sys
import threading
import warnings

import holdfast
from holdfast.testing.faults.workload import Append, attempt
from holdfast.testing.faults.writer import tell

CHILDREN = 9
SESSIONS = ("shared", "other")


def append(client: holdfast.Client, writer: str, first: int, last: int) -> None:
    for number in range(first, last + 1):
        attempt(client, Append(SESSIONS[number % 2], writer, number, keyed=number % 3 == 0), tell)


def until(stop: threading.Event, client: holdfast.Client, writer: str) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        append(client, writer, number, number)
        client.get_session(SESSIONS[number % 2], auto_create=True)


def child(client: holdfast.Client, number: int) -> None:
    """Also from threads of its own, all of which find the client as it was when their process began."""
    threads = [threading.Thread(target=append, args=(client, f"child{number}x{side}", 1, 4)) for side in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fork(client: holdfast.Client, number: int) -> int:
    """Children end in different ways: at once, through every exit handler, by force."""
    pid = os.fork()
    if pid:
        return pid
    child(client, number)
    if number % 3 == 1:
        os._exit(0)
    if number % 3 == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit()


def fork_by_hand(client: holdfast.Client) -> None:
    pids = [fork(client, number) for number in range(CHILDREN)]
    for number, pid in enumerate(pids):
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code != (-signal.SIGKILL if number % 3 == 2 else 0):
            raise SystemExit(f"child {number} ended with {code}")


def fork_by_multiprocessing(client: holdfast.Client) -> None:
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=child, args=(client, number)) for number in range(CHILDREN)]
    for process in children:
        process.start()
    for process in children:
        process.join()
        if process.exitcode != 0:
            raise SystemExit(f"a child ended with {process.exitcode}")


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # that threads and forks go together badly is the point here
    target, way = sys.argv[1:]
    with holdfast.connect(target) as client:
        stop = threading.Event()
        threads = [threading.Thread(target=until, args=(stop, client, f"parent{side}")) for side in "abc"]
        for thread in threads:
            thread.start()
        try:
            {"fork": fork_by_hand, "multiprocessing": fork_by_multiprocessing}[way](client)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        append(client, "parentafterwards", 1, 4)


if __name__ == "__main__":
    main()
