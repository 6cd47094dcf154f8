"""A program that forks while another thread holds one of the client's internal locks."""

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
        with to_hold[0]:
            held.set()
            released.wait(20)

    if to_hold:
        threading.Thread(target=hold).start()
        held.wait(20)


to_hold: list[threading.Lock] = []
"""The lock to hold during the fork. Empty before and after it."""
# Functions that run before a fork run in reverse order. This one runs last, after all others have taken their locks.
os.register_at_fork(before=hold_the_lock, after_in_parent=released.set)

import holdfast  # noqa: E402
from holdfast.testing.faults.workload import Append, attempt  # noqa: E402
from holdfast.testing.faults.writer import report  # noqa: E402

TIMEOUT_SECONDS = 10


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns about forks with threads
    target, path = sys.argv[1:]
    with holdfast.connect(target) as client:
        attempt(client, Append("chat", "before", 1), report)
        to_hold.append(operator.attrgetter(path)(client))
        pid = os.fork()
        if pid == 0:
            signal.alarm(TIMEOUT_SECONDS)
            attempt(client, Append("chat", "child", 1), report)
            attempt(client, Append("new", "child", 2), report)
            client.get_messages("chat")
            client.close()
            os._exit(0)
        to_hold.clear()
        attempt(client, Append("chat", "parent", 1), report)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):
        sys.exit(f"the child exited with {code}" if code else 0)


if __name__ == "__main__":
    main()
