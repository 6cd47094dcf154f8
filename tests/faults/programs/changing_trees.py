"""Forks processes that move, remove and restore a folder in a loop, and replaces those that are killed.

Argument: the database. The output has the process id of each child when it is ready, and then a line before and after
each of its changes: `begin STATE STATE` and `done STATE`, where a state is the name of the folder, or `removed`, and
the number of the note; and `killed PID`. A line of the standard input, with the name that the folder had last, starts
the next child. When the standard input ends, the program kills the child and exits.
"""

import os
import random
import select
import signal
import sys
from collections.abc import Callable
from importlib import import_module

import holdfast
from holdfast import Client
from holdfast.errors import HoldfastError, NotFoundError

TOP = "viking://resources/work"
NAMES = ("one", "two/deep", "three")
REMOVED = "removed"
NOTE_SHARE, REMOVED_SHARE = 0.2, 0.5
POLL_SECONDS = 0.005
Change = tuple[str, Callable[[], object]]


def report(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def read_state(client: Client) -> tuple[str, int]:
    note = int(client.read(f"{TOP}/note.md").split()[0])
    for name in NAMES:
        try:
            client.stat(f"{TOP}/{name}")
        except NotFoundError:
            continue
        return name, note
    return REMOVED, note


def choose_change(client: Client, rng: random.Random, place: str, note: int, last: str) -> Change:
    """Return the state after a random change, and what makes it."""
    if rng.random() < NOTE_SHARE:
        return f"{place} {note + 1}", lambda: client.write(f"{TOP}/note.md", text_of(note + 1))
    if place == REMOVED:
        return f"{last} {note}", lambda: client.restore(f"{TOP}/{last}")
    if rng.random() < REMOVED_SHARE:
        return f"{REMOVED} {note}", lambda: client.rm(f"{TOP}/{place}", recursive=True)
    other = rng.choice([name for name in NAMES if name != place])
    return f"{other} {note}", lambda: client.mv(f"{TOP}/{place}", f"{TOP}/{other}")


def change_forever(client: Client, rng: random.Random, last: str) -> None:
    """Make one random change after another. `last` is the name that the folder had last."""
    while True:
        place, note = read_state(client)
        last = last if place == REMOVED else place
        after, change = choose_change(client, rng, place, note, last)
        report(f"begin {place} {note} {after}")
        try:
            change()
        except HoldfastError:  # the transaction of a killed process was committed meanwhile
            if read_state(client) == (place, note):
                raise
            continue
        report(f"done {after}")


def text_of(number: int) -> str:
    return f"{number} " + f"limpet{number} " * 400


def run(target: str, seed: int, last: str) -> None:
    with holdfast.connect(target, settings=holdfast.Settings(worker_threads=0)) as client:
        client.stat(TOP)
        report(str(os.getpid()))
        change_forever(client, random.Random(seed), last)


def fork(target: str, seed: int, last: str) -> int:
    child = os.fork()
    if child == 0:
        try:
            run(target, seed, last)
        finally:
            os._exit(1)
    return child


def main() -> None:
    target = sys.argv[1]
    import_module(f"holdfast.store.drivers.{'postgres' if '://' in target else 'sqlite'}.database")
    import_module("holdfast.engine.tree.moving")
    seed = 0
    while True:
        line = sys.stdin.readline()
        if not line:
            return
        seed += 1
        child = fork(target, seed, line.strip())
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if select.select([0], [], [], POLL_SECONDS)[0]:  # the standard input has ended
                os.kill(child, signal.SIGKILL)
                return
        report(f"killed {child}")


if __name__ == "__main__":
    main()
