"""A program that forks while a task is in hand: `working_fork.py TARGET MODEL_URL`. It ends with 0 if all went well.

Children end through every exit handler: one at once, one after commits of its own.
"""

import os
import sys
import warnings

import holdfast
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.faults.workers import READS_LITTLE, commit

LONG = 60.0
"""A lease: who loses a task by mistake does not get it back in time."""


def child(client: holdfast.Client, *, commits: bool) -> int:
    pid = os.fork()
    if pid:
        return pid
    if commits:
        (task_id,) = commit(client, "child", 1, count=2)
        if client.wait_for_task(task_id).status != "completed":
            os._exit(3)
    sys.exit(0)


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # that threads and forks go together badly is the point here
    target, url = sys.argv[1:]
    settings = holdfast.Settings(**READS_LITTLE, model_base_url=url, task_lease_seconds=LONG)
    with holdfast.connect(target, settings=settings) as client:
        # A thread that imports at the moment of a fork would leave the child a module that is locked for ever.
        client.wait_for_task(commit(client, "first", 1, count=2)[0])
        (task_id,) = commit(client, "parent", 1, count=2)
        wait_for(lambda: client.get_task(task_id).stage == "plan")  # and it waits for the model now
        children = [child(client, commits=False), child(client, commits=True)]
        ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        if ends != [0, 0]:
            raise SystemExit(f"the children ended with {ends}")
        task = client.wait_for_task(task_id)
        if (task.status, task.attempts) != ("completed", 1):
            raise SystemExit(f"the task is {task.status} after {task.attempts} attempts")
        (task_id,) = commit(client, "later", 1, count=2)
        if client.wait_for_task(task_id).status != "completed":
            raise SystemExit("the parent does not work any more")


if __name__ == "__main__":
    main()
