"""The contract of commits with background workers."""

import time
from typing import Any

from holdfast.testing.contract.commits.commits import add_numbered_messages, archive_states

TIMEOUT_SECONDS = 30.0


class BackgroundContract:
    def test_a_commit_is_finished_in_the_background(self, client: Any) -> None:
        session = client.session("s")
        add_numbered_messages(client, "s", 3)
        task = client.wait_for_task(session.commit().task_id, seconds=TIMEOUT_SECONDS)
        assert (task.status, task.error) == ("completed", None)
        assert session.archive("archive_001").messages == client.get_messages("s").messages
        assert session.context().latest_archive_overview

    def test_the_context_has_every_message_during_consecutive_commits(self, client: Any) -> None:
        tasks = []
        for number in range(1, 9):
            add_numbered_messages(client, "s", 2, first=2 * number - 1)
            tasks.append(client.commit_session("s").task_id)
            self._check_complete(client, 2 * number)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while client.get_task(tasks[-1]).status != "completed":
            self._check_complete(client, 16)
            assert time.monotonic() < deadline
        self._check_complete(client, 16)
        assert archive_states(client, "s") == ["done"] * 8

    def _check_complete(self, client: Any, count: int) -> None:
        context = client.get_session_context("s")
        covered = [line.last_seq for line in context.receipt.included if "overview" in line.what]
        first = covered[0] + 1 if covered else 1
        assert [message.seq for message in context.messages] == list(range(first, count + 1))

    def test_an_idle_session_is_committed_in_the_background(self, client: Any) -> None:
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": 0.05})
        add_numbered_messages(client, "s", 2)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while archive_states(client, "s") != ["done"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
