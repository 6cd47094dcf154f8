"""A program that forks while it runs a task: `forking_during_task.py TARGET MODEL_URL`. It exits with 0 on success.

It forks twice. One child exits at once, the other one after a commit of its own. Both run the exit handlers, which must
not disturb the task of the parent.
"""

import os
import sys
import warnings

import holdfast
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.faults.workers.processes import SMALL_MODEL, add_and_commit

LEASE_SECONDS = 60.0
"""Long, so that a task that is lost by mistake is not claimed again during the test."""
EXIT_COMMIT_FAILED = 3


def fork_child(client: holdfast.Client, *, commits: bool) -> int:
    """Fork, and return the process id of the child. The child exits, after a commit if `commits`."""
    pid = os.fork()
    if pid:
        return pid
    if commits:
        (task_id,) = add_and_commit(client, "child", archives=1, count=2)
        if client.wait_for_task(task_id).status != "completed":
            os._exit(EXIT_COMMIT_FAILED)
    sys.exit(0)


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns about forks with threads
    target, url = sys.argv[1:]
    settings = holdfast.Settings(**SMALL_MODEL, model_base_url=url, task_lease_seconds=LEASE_SECONDS)
    with holdfast.connect(target, settings=settings) as client:
        # The first commit loads all modules. A module that a thread imports during the fork stays locked in the child.
        client.wait_for_task(add_and_commit(client, "first", archives=1, count=2)[0])
        (task_id,) = add_and_commit(client, "parent", archives=1, count=2)
        wait_for(lambda: client.get_task(task_id).stage == "plan")  # it now waits for the model
        children = [fork_child(client, commits=False), fork_child(client, commits=True)]
        exit_codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        if exit_codes != [0, 0]:
            raise SystemExit(f"the children exited with {exit_codes}")
        task = client.wait_for_task(task_id)
        if (task.status, task.attempts) != ("completed", 1):
            raise SystemExit(f"the task is {task.status} after {task.attempts} attempts")
        (task_id,) = add_and_commit(client, "later", archives=1, count=2)
        if client.wait_for_task(task_id).status != "completed":
            raise SystemExit("the parent can no longer run tasks")


if __name__ == "__main__":
    main()
