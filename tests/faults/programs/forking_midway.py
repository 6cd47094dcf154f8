"""A program that forks at the moment when another of its threads holds a lock that everyone takes for an instant."""

import operator
import os
import signal
import sys
import threading
import warnings
from contextlib import suppress

held = threading.Event()
released = threading.Event()


def hold_the_lock() -> None:
    def hold() -> None:
        with holder[0]:
            held.set()
            released.wait(20)

    if holder:
        threading.Thread(target=hold).start()
        held.wait(20)


holder: list[threading.Lock] = []
# Of functions that run before a fork, the one registered first runs last: when everything is quiet already.
os.register_at_fork(before=hold_the_lock, after_in_parent=released.set)

import holdfast  # noqa: E402
from holdfast.testing.faults.workload import Append, attempt  # noqa: E402
from holdfast.testing.faults.writer import tell  # noqa: E402

PATIENCE = 10


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # that threads and forks go together badly is the point here
    target, path = sys.argv[1:]
    with holdfast.connect(target) as client:
        attempt(client, Append("chat", "before", 1), tell)
        holder.append(operator.attrgetter(path)(client))
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE)
            attempt(client, Append("chat", "child", 1), tell)
            attempt(client, Append("new", "child", 2), tell)
            client.get_messages("chat")
            client.close()
            os._exit(0)
        holder.clear()
        attempt(client, Append("chat", "parent", 1), tell)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):
        sys.exit(f"the child ended with {code}" if code else 0)


if __name__ == "__main__":
    main()
