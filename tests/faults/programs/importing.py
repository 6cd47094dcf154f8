"""Imports a pack again and again, each time killed at the next boundary of a transaction, until an import is complete.

Arguments: the database, and the id of the upload. Each line of the output has the tree that a kill has left.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import holdfast
from holdfast.ops.tree.packs import ImportPack

BOUNDARIES = ("is written", "is committed")
"""A transaction that begins is at the boundary of the one that was committed before."""
FOLDER = "viking://resources/guide"


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at(database: Any, boundary: int) -> None:
    """Kill this process at a boundary, counted over all writes from now on."""
    number, when = divmod(boundary, len(BOUNDARIES))
    write, count = database.write, -1

    def write_and_kill(account: str, transaction: Callable[[Any], Any]) -> Any:
        nonlocal count
        count += 1
        if count != number:
            return write(account, transaction)

        def transact(tx: Any) -> Any:
            result = transaction(tx)
            tx.one("SELECT 1")
            if when == 0:
                kill()
            return result

        write(account, transact)
        return kill()

    database.write = write_and_kill


def import_once(target: str, temp_file_id: str, boundary: int) -> None:
    with holdfast.connect(target, settings=holdfast.Settings(worker_threads=0)) as client:
        found = client.ls("viking://resources", recursive=True, simple=True)
        sys.stdout.write(f"{json.dumps(found)}\n")
        sys.stdout.flush()
        if found:
            client.rm(FOLDER, recursive=True)
        transport: Any = client._transport
        kill_at(transport.engine.db, boundary)
        transport.call(ImportPack(temp_file_id=temp_file_id, parent="viking://resources"))


def load_modules(target: str) -> None:
    """Load what an import needs, so that it is not loaded again by each child."""
    driver = "postgres" if "://" in target else "sqlite"
    for name in (f"holdfast.store.drivers.{driver}.database", "holdfast.engine.resources.packs.preparation"):
        import_module(name)


def main() -> None:
    load_modules(sys.argv[1])
    boundary = 0
    while True:
        child = os.fork()
        if child == 0:
            import_once(sys.argv[1], sys.argv[2], boundary)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(os.WEXITSTATUS(status))
        boundary += 1


if __name__ == "__main__":
    main()
