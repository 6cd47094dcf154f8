"""The contract of uses: what a session used counts when it is committed."""

from collections.abc import Callable
from typing import Any

RunTasks = Callable[..., None]


class UseContract:
    """Needs the fixtures of `CommitContract`."""

    def test_addresses_that_mean_the_same_count_once(self, client: Any, run_tasks: RunTasks) -> None:
        same = ["viking://~/memories/auth", "viking://user/alice/memories/auth/", "viking://user/memories/auth"]
        client.session_used("s", [*same, "viking://user/alice/memories/other", "no address", "no address/"])
        client.add_message("s", "user", "hello")
        task_id = client.commit_session("s").task_id
        run_tasks()
        assert client.get_task(task_id).result["active_count_updated"] == 3

    def test_a_very_long_address_does_not_prevent_a_commit(self, client: Any, run_tasks: RunTasks) -> None:
        client.session_used("s", ["viking://resources/" + "ä" * 2_000, "x" * 2_048])
        client.add_message("s", "user", "hello")
        task_id = client.commit_session("s").task_id
        run_tasks()
        assert client.get_task(task_id).result["active_count_updated"] == 2
