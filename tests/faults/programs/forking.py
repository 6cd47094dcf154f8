"""A program that forks while its threads append and read. The children append with the inherited client."""

import multiprocessing
import os
import signal
import sys
import threading
import warnings

import holdfast
from holdfast.testing.faults.workload import Append, attempt
from holdfast.testing.faults.writer import report

CHILDREN = 9
SESSIONS = ("shared", "other")


def append(client: holdfast.Client, writer: str, first: int, last: int) -> None:
    for number in range(first, last + 1):
        attempt(client, Append(SESSIONS[number % 2], writer, number, keyed=number % 3 == 0), report)


def append_until(stop: threading.Event, client: holdfast.Client, writer: str) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        append(client, writer, number, number)
        client.get_session(SESSIONS[number % 2], auto_create=True)


def child(client: holdfast.Client, number: int) -> None:
    """Append from two threads. Both use the client in the state it had at the fork."""
    threads = [threading.Thread(target=append, args=(client, f"child{number}x{side}", 1, 4)) for side in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fork(client: holdfast.Client, number: int) -> int:
    """Fork a child. By its number it exits at once, by SIGKILL, or through the exit handlers."""
    pid = os.fork()
    if pid:
        return pid
    child(client, number)
    if number % 3 == 1:
        os._exit(0)
    if number % 3 == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit()


def fork_with_os(client: holdfast.Client) -> None:
    pids = [fork(client, number) for number in range(CHILDREN)]
    for number, pid in enumerate(pids):
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code != (-signal.SIGKILL if number % 3 == 2 else 0):
            raise SystemExit(f"child {number} exited with {code}")


def fork_with_multiprocessing(client: holdfast.Client) -> None:
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=child, args=(client, number)) for number in range(CHILDREN)]
    for process in children:
        process.start()
    for process in children:
        process.join()
        if process.exitcode != 0:
            raise SystemExit(f"a child exited with {process.exitcode}")


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns about forks with threads
    target, method = sys.argv[1:]
    with holdfast.connect(target) as client:
        stop = threading.Event()
        threads = [threading.Thread(target=append_until, args=(stop, client, f"parent{side}")) for side in "abc"]
        for thread in threads:
            thread.start()
        try:
            {"fork": fork_with_os, "multiprocessing": fork_with_multiprocessing}[method](client)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        append(client, "parentafterwards", 1, 4)


if __name__ == "__main__":
    main()
