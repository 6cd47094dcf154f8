"""Tasks that one process leaves and another finds, also with different settings."""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import holdfast
from holdfast.config import Settings
from holdfast.errors import DeadlineExceededError, FailedPreconditionError
from holdfast.testing.faults.watching import wait_for

NO_WORKERS = Settings(worker_threads=0)
UNREACHABLE_MODEL: dict[str, Any] = {
    "model_provider": "openai",
    "model_name": "none",
    "model_base_url": "http://127.0.0.1:9/v1",
    "task_attempts": 1,
}


def commit(client: holdfast.Client, session_id: str) -> str:
    client.add_message(session_id, "user", "Deploy it to staging, never to production.")
    return str(client.commit_session(session_id).task_id)


def states(client: holdfast.Client, session_id: str) -> list[str]:
    return [archive.state for archive in client.list_archives(session_id)]


def test_a_client_in_use_runs_the_tasks_that_another_process_leaves(target: str) -> None:
    with holdfast.connect(target, settings=Settings(task_lease_seconds=0.1)) as client:
        with holdfast.connect(target, settings=NO_WORKERS) as other:
            commit(other, "left")
        wait_for(lambda: client.get_session("left").commit_count == 1)
        assert client.get_session_context("left").latest_archive_overview.startswith("# Session Summary")


def test_archives_that_wait_for_a_failed_one_proceed_when_the_policy_changes(target: str) -> None:
    with holdfast.connect(target, settings=Settings(**UNREACHABLE_MODEL, after_failed_archive="wait")) as client:
        assert client.wait_for_task(commit(client, "s")).status == "failed"
        commit(client, "s")
        assert states(client, "s") == ["failed", "pending"]
    with holdfast.connect(target, settings=Settings(after_failed_archive="proceed")) as client:
        assert client.wait_for_task(commit(client, "s")).status == "completed"
        assert states(client, "s") == ["failed", "done", "done"]
        assert client.wait_for_task(client.retry_archive("s", "archive_001").task_id).status == "completed"
        assert states(client, "s") == ["done"] * 3
        assert client.get_session_context("s").messages == []


def test_an_append_succeeds_when_its_automatic_commit_is_rejected(target: str) -> None:
    policy = {"message_count_threshold": 1}
    with holdfast.connect(target, settings=Settings(**UNREACHABLE_MODEL)) as client:
        client.create_session("s", auto_commit_policy=policy)
        client.add_message("s", "user", "one")
        wait_for(lambda: states(client, "s") == ["failed"])
        client.add_message("s", "user", "two")
        assert states(client, "s") == ["failed"]
        with pytest.raises(FailedPreconditionError):
            client.commit_session("s")
        assert [message.text for message in client.get_session_context("s").messages] == ["one", "two"]


def test_a_fork_uses_the_auto_commit_policy_of_its_parent(target: str) -> None:
    with holdfast.connect(target) as client:
        client.create_session("s", auto_commit_policy={"idle_timeout_seconds": 0.2, "keep_recent_count": 1})
        client.batch_add_messages("s", [{"role": "user", "content": text} for text in ("one", "two")])
        client.fork_session("s", new_session_id="child")
        wait_for(lambda: [client.get_session(name).commit_count for name in ("s", "child")] == [1, 1])
        assert [message.text for message in client.session("child").messages] == ["two"]


def test_waiting_without_workers_times_out_and_names_the_number_of_unfinished_tasks(target: str) -> None:
    with holdfast.connect(target, settings=NO_WORKERS) as client:
        commit(client, "s")
        with pytest.raises(DeadlineExceededError, match="1 tasks are not done"):
            client.wait_until_idle(0.2)


def test_a_script_that_exits_without_closing_finishes_its_tasks(target: str) -> None:
    script = """
import sys, holdfast
client = holdfast.connect(sys.argv[1], settings=holdfast.Settings(close_seconds=60))
client.add_message("s", "user", "Deploy it to staging, never to production.")
client.commit_session("s")
"""
    result = subprocess.run(
        [sys.executable, "-c", script, target], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    with holdfast.connect(target, settings=NO_WORKERS) as client:
        assert states(client, "s") == ["done"]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [(200, b"\xff\xfe\x00\x80 no\x00thing", "not JSON"), (307, b"", "answered 307")],
    ids=["not text", "redirect"],
)
def test_an_invalid_model_response_fails_the_task_at_once(target: str, status: int, body: bytes, error: str) -> None:
    class InvalidResponse(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), InvalidResponse)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    settings = Settings(**{**UNREACHABLE_MODEL, "model_base_url": url, "task_attempts": 100})
    try:
        with holdfast.connect(target, settings=settings) as client:
            task = client.wait_for_task(commit(client, "s"))
            assert (task.status, task.attempts) == ("failed", 1)
            assert error in str(task.error)
    finally:
        server.shutdown()
        server.server_close()
