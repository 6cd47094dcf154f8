"""What a client must find done by itself, when there are workers."""

import time
from typing import Any

from holdfast.testing.contract.commits.commits import states, talk

PATIENCE = 30.0


class BackgroundContract:
    def test_a_commit_is_finished_by_itself(self, client: Any) -> None:
        session = client.session("s")
        talk(client, "s", 3)
        task = client.wait_for_task(session.commit().task_id, seconds=PATIENCE)
        assert (task.status, task.error) == ("completed", None)
        assert session.archive("archive_001").messages == client.get_messages("s").messages
        assert session.context().latest_archive_overview

    def test_no_message_is_ever_missing_while_commits_follow_one_another(self, client: Any) -> None:
        tasks = []
        for number in range(1, 9):
            talk(client, "s", 2, first=2 * number - 1)
            tasks.append(client.commit_session("s").task_id)
            self._check_whole(client, 2 * number)
        deadline = time.monotonic() + PATIENCE
        while client.get_task(tasks[-1]).status != "completed":
            self._check_whole(client, 16)
            assert time.monotonic() < deadline
        self._check_whole(client, 16)
        assert states(client, "s") == ["done"] * 8

    def _check_whole(self, client: Any, count: int) -> None:
        context = client.get_session_context("s")
        covered = [line.last_seq for line in context.receipt.included if "overview" in line.what]
        first = covered[0] + 1 if covered else 1
        assert [message.seq for message in context.messages] == list(range(first, count + 1))

    def test_a_session_that_nobody_touches_is_committed_in_its_time(self, client: Any) -> None:
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": 0.05})
        talk(client, "s", 2)
        deadline = time.monotonic() + PATIENCE
        while states(client, "s") != ["done"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
