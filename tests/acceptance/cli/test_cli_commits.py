"""Commits, tasks and files on the command line, embedded and through a real server."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast

Cli = Callable[..., Any]
ASKED = "Deploy the billing service to staging, never to production."
HERE = "viking://session/chat"
DEAD_MODEL = {
    "HOLDFAST_MODEL_PROVIDER": "openai",
    "HOLDFAST_MODEL_NAME": "none",
    "HOLDFAST_MODEL_API_KEY": "none",
    "HOLDFAST_MODEL_BASE_URL": "http://127.0.0.1:9/v1",
    "HOLDFAST_TASK_ATTEMPTS": "1",
}


@pytest.fixture
def chat(ok: Cli) -> str:
    ok("session", "add-message", "chat", "--role", "user", "--content", ASKED)
    return "chat"


@pytest.fixture
def task_id(ok: Cli, chat: str) -> str:
    """The task of a commit that is done."""
    done: str = ok("session", "commit", chat, "--wait", "-o", "json").json["task_id"]
    return done


def test_a_commit_names_its_archive_and_its_task(ok: Cli, chat: str, client: holdfast.Client) -> None:
    done = ok("session", "commit", chat)
    (archive,) = client.list_archives(chat)
    assert archive.uri in done.out
    assert archive.task_id in done.out


def test_a_commit_with_nothing_to_do_says_why(ok: Cli, chat: str) -> None:
    ok("session", "new", "--id", "empty")
    assert ok("session", "commit", "empty").out == "nothing to commit in empty: no messages\n"
    kept = ok("session", "commit", chat, "--keep-recent-count", "5", "--wait", "-o", "json").json
    assert (kept["status"], kept["reason"]) == ("skipped", "all_within_keep_window")


def test_to_wait_for_a_commit_ends_with_what_it_resulted_in(ok: Cli, chat: str) -> None:
    done = ok("session", "commit", chat, "--wait", "-o", "json").json
    assert (done["status"], done["result"]["session_id"]) == ("completed", "chat")
    assert done["result"]["archive_uri"].endswith("/chat/history/archive_001")


def test_the_context_shows_the_overview_and_the_messages(ok: Cli, task_id: str, client: holdfast.Client) -> None:
    ok("session", "add-message", "chat", "--role", "user", "--content", "And now?")
    done = ok("session", "get-session-context", "chat")
    assert "never to production" in done.out
    assert "And now?" in done.out
    assert "1 archives, 0 of them failed" in done.err
    told = ok("session", "get-session-context", "chat", "--token-budget", "0", "-o", "json").json
    assert told == client.get_session_context("chat", 0).to_dict()
    assert told["latest_archive_overview"] == ""


def test_the_context_shows_the_system_message_and_what_was_left_out(ok: Cli, client: holdfast.Client) -> None:
    client.add_message("chat", "system", "You are a pirate.")
    client.add_message("chat", "tool", parts=[holdfast.ToolPart(tool_name="read", output="ahoy sailor " * 1_000)])
    done = ok("session", "get-session-context", "chat", "--token-budget", "500")
    assert done.out.startswith("You are a pirate.\n")
    (result,) = client.list_tool_results("chat").tool_results
    assert f"Left out, message 2: output {result.tool_result_id}" in done.err
    assert "read_tool_result" in done.err
    assert "Left out" not in ok("session", "get-session-context", "chat").err
    assert "Left out, message 2" in ok("session", "expand", "chat", "[#1-2]", "--token-budget", "500").err


def test_an_archive_can_be_listed_shown_and_brought_back(ok: Cli, task_id: str, client: holdfast.Client) -> None:
    assert "archive_001  done" in ok("session", "archives", "chat").out
    assert ok("session", "archives", "chat", "-o", "json").json == [client.list_archives("chat")[0].to_dict()]
    shown = ok("session", "get-session-archive", "chat", "archive_001")
    assert "# Session Summary" in shown.out
    assert ASKED in shown.out
    assert ASKED in ok("session", "expand", "chat", "archive_001").out
    assert ok("session", "expand", "chat", "1", "-o", "jsonl").jsonl == [
        client.expand("chat", "1").messages[0].to_dict(),
    ]


def test_what_does_not_fit_is_told_where_to_go_on(ok: Cli) -> None:
    ok("session", "add-messages", "chat", "-", stdin=f'{{"role":"user","content":"{ASKED}"}}\n' * 3)
    done = ok("session", "expand", "chat", "1-3", "--token-budget", "1")
    assert (done.out.count("billing"), done.err) == (1, "There are more: 2-3 is the rest.\n")


def test_tasks_are_listed_by_kind_state_and_session(ok: Cli, task_id: str) -> None:
    ok("session", "add-message", "other", "--role", "user", "--content", ASKED)
    ok("session", "commit", "other", "--wait")
    asked = ("task", "list", "--type", "session_commit", "--status", "completed", "--resource", "chat")
    assert [row["task_id"] for row in ok(*asked, "-o", "json").json] == [task_id]
    assert [row["resource_id"] for row in ok("task", "list", "-o", "jsonl").jsonl] == ["other", "chat"]
    assert len(ok("task", "list", "--limit", "1", "-o", "json").json) == 1
    assert ok("task", "list", "--status", "failed").out == ""
    assert task_id in ok("task", "list").out


def test_a_task_that_has_ended_is_shown_at_once(ok: Cli, task_id: str, client: holdfast.Client) -> None:
    told = client.get_task(task_id).to_dict()
    assert ok("task", "status", task_id, "-o", "json").json == told
    assert ok("task", "watch", task_id, "-o", "json").json == told
    shown = ok("task", "watch", task_id).out
    assert "completed" in shown
    assert "created_at " not in shown, "a table has times, not seconds"


def test_what_is_done_can_neither_be_cancelled_nor_retried(cli: Cli, task_id: str) -> None:
    for verb in ("cancel", "retry"):
        done = cli("task", verb, task_id)
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
        assert "is completed" in done.err


def test_a_task_that_fails_ends_with_1_and_can_be_retried_or_cancelled(
    anywhere: Cli, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = ("--path", str(tmp_path))
    anywhere(*here, "session", "add-message", "chat", "--role", "user", "--content", ASKED)
    with monkeypatch.context() as patched:
        for name, value in DEAD_MODEL.items():
            patched.setenv(name, value)
        failed = anywhere(*here, "session", "commit", "chat", "--wait", "-o", "json")
    assert (failed.code, failed.json["status"]) == (1, "failed")
    assert failed.err == ""
    task_id = failed.json["task_id"]
    assert anywhere(*here, "task", "watch", task_id).code == 1
    assert "127.0.0.1:9" in anywhere(*here, "task", "list", "--status", "failed").out
    assert "127.0.0.1:9" in anywhere(*here, "session", "archives", "chat").out
    assert anywhere(*here, "task", "cancel", task_id).out == f"cancelled {task_id}\n"
    assert anywhere(*here, "task", "retry", task_id).out == f"{task_id} begins again\n"
    assert anywhere(*here, "task", "watch", task_id, "-o", "json").json["status"] == "completed"


def test_the_tree_is_listed_from_the_root_on(ok: Cli, task_id: str) -> None:
    assert ok("ls").out.splitlines()[1].startswith("user/")
    assert [row["name"] for row in ok("ls", HERE, "-o", "json").json] == ["messages.jsonl", "history"]
    assert ".overview.md" in ok("ls", HERE, "--all").out
    assert "history/archive_001/.done" in ok("ls", HERE, "-a", "-r").out
    lines = ok("tree", "viking://user", "-L", "5").out.splitlines()
    assert [line.split("  ")[0].split()[0] for line in lines[1:3]] == ["default/", "│"]
    assert "│ │ │ history/" in "\n".join(lines)


def test_a_listing_goes_on_where_it_ended(ok: Cli) -> None:
    for number in range(3):
        ok("session", "new", "--id", f"chat_{number}")
    done = ok("ls", "viking://session", "--limit", "2")
    assert ("chat_2/" in done.out, "chat_0/" in done.out) == (True, False)
    assert done.err == "There are more: --offset 2 goes on.\n"
    rest = ok("tree", "viking://session", "--offset", "2", "--limit", "1", "-o", "json")
    assert [row["rel_path"] for row in rest.json] == ["chat_1"]


def test_a_file_is_printed_exactly(ok: Cli, client: holdfast.Client) -> None:
    ok("session", "add-messages", "chat", "-", stdin='{"role":"user","content":"Grüße\\n\\u001b[31m"}\n' * 1_001)
    uri = f"{HERE}/messages.jsonl"
    whole = ok("read", uri).out
    assert whole == client.read(uri)
    assert [json.loads(line)["seq"] for line in whole.splitlines()] == list(range(1, 1_002))
    assert ok("read", uri, "--offset", "3", "--limit", "2").out == "".join(whole.splitlines(keepends=True)[3:5])
    assert ok("read", uri, "-o", "json").json == whole


def test_a_session_and_an_archive_are_told_in_a_line_or_in_whole(
    ok: Cli, task_id: str, client: holdfast.Client
) -> None:
    for uri in (HERE, f"{HERE}/history/archive_001"):
        assert ok("abstract", uri).out == f"{client.abstract(uri)}\n"
        assert ok("overview", uri).out == f"{client.overview(uri)}\n"


def test_a_place_that_is_not_there_exits_with_3_and_one_that_cannot_be_with_1(cli: Cli, chat: str) -> None:
    for args, code in (
        (("ls", "viking://session/nobodys"), 3),
        (("read", f"{HERE}/nothing"), 3),
        (("abstract", HERE), 3),
        (("overview", HERE), 3),
        (("task", "watch", "task_none"), 3),
        (("session", "commit", "nobodys"), 3),
        (("session", "get-session-archive", chat, "archive_001"), 3),
        (("ls", "viking://elsewhere"), 1),
        (("tree", "chat"), 1),
        (("read", HERE), 1),
        (("session", "commit", chat, "--keep-recent-count", "-1"), 1),
    ):
        done = cli(*args)
        assert (done.code, done.out) == (code, ""), (args, done)
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1


def test_a_listing_does_no_background_work(tmp_path: Path) -> None:
    """It would have to wait for a model; who commits or watches a task works on it."""
    with holdfast.connect(tmp_path, settings=holdfast.Settings(worker_threads=0)) as client:
        client.add_message("left", "user", ASKED)
        task_id = str(client.commit_session("left").task_id)

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "holdfast", "--path", str(tmp_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    assert "left" in run("session", "list")
    assert "pending" in run("task", "status", task_id)
    assert "completed" in run("task", "watch", task_id)
