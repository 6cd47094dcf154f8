"""Commits, tasks and files on the command line, on an embedded database and through a real server."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast

Cli = Callable[..., Any]
MESSAGE = "Deploy the billing service to staging, never to production."
SESSION_URI = "viking://session/chat"
UNREACHABLE_MODEL = {
    "HOLDFAST_MODEL_PROVIDER": "openai",
    "HOLDFAST_MODEL_NAME": "none",
    "HOLDFAST_MODEL_API_KEY": "none",
    "HOLDFAST_MODEL_BASE_URL": "http://127.0.0.1:9/v1",
    "HOLDFAST_TASK_ATTEMPTS": "1",
}


@pytest.fixture
def chat(cli_ok: Cli) -> str:
    cli_ok("session", "add-message", "chat", "--role", "user", "--content", MESSAGE)
    return "chat"


@pytest.fixture
def task_id(cli_ok: Cli, chat: str) -> str:
    """The id of a finished commit task."""
    finished: str = cli_ok("session", "commit", chat, "--wait", "-o", "json").json["task_id"]
    return finished


def test_a_commit_prints_its_archive_and_its_task(cli_ok: Cli, chat: str, client: holdfast.Client) -> None:
    done = cli_ok("session", "commit", chat)
    (archive,) = client.list_archives(chat)
    assert archive.uri in done.out
    assert archive.task_id in done.out


def test_a_commit_without_messages_to_archive_prints_the_reason(cli_ok: Cli, chat: str) -> None:
    cli_ok("session", "new", "--id", "empty")
    assert cli_ok("session", "commit", "empty").out == "nothing to commit in empty: no messages\n"
    kept = cli_ok("session", "commit", chat, "--keep-recent-count", "5", "--wait", "-o", "json").json
    assert (kept["status"], kept["reason"]) == ("skipped", "all_within_keep_window")


def test_commit_with_wait_prints_the_finished_task(cli_ok: Cli, chat: str) -> None:
    done = cli_ok("session", "commit", chat, "--wait", "-o", "json").json
    assert (done["status"], done["result"]["session_id"]) == ("completed", "chat")
    assert done["result"]["archive_uri"].endswith("/chat/history/archive_001")


def test_the_context_has_the_overview_and_the_messages(cli_ok: Cli, task_id: str, client: holdfast.Client) -> None:
    cli_ok("session", "add-message", "chat", "--role", "user", "--content", "And now?")
    done = cli_ok("session", "get-session-context", "chat")
    assert "never to production" in done.out
    assert "And now?" in done.out
    assert "1 archive, 0 failed" in done.err
    context = cli_ok("session", "get-session-context", "chat", "--token-budget", "0", "-o", "json").json
    assert context == client.get_session_context("chat", 0).to_dict()
    assert context["latest_archive_overview"] == ""


def test_the_context_has_the_system_message_and_lists_omissions(cli_ok: Cli, client: holdfast.Client) -> None:
    client.add_message("chat", "system", "You are a pirate.")
    client.add_message("chat", "tool", parts=[holdfast.ToolPart(tool_name="read", output="ahoy sailor " * 1_000)])
    done = cli_ok("session", "get-session-context", "chat", "--token-budget", "500")
    assert done.out.startswith("You are a pirate.\n")
    (result,) = client.list_tool_results("chat").tool_results
    assert f"Left out, tool output of message 2: output {result.tool_result_id}" in done.err
    assert "read_tool_result" in done.err
    assert "Left out" not in cli_ok("session", "get-session-context", "chat").err
    assert (
        "Left out, tool output of message 2"
        in cli_ok("session", "expand", "chat", "[#1-2]", "--token-budget", "500").err
    )


def test_an_archive_can_be_listed_shown_and_expanded(cli_ok: Cli, task_id: str, client: holdfast.Client) -> None:
    assert "archive_001  done" in cli_ok("session", "archives", "chat").out
    assert cli_ok("session", "archives", "chat", "-o", "json").json == [client.list_archives("chat")[0].to_dict()]
    shown = cli_ok("session", "get-session-archive", "chat", "archive_001")
    assert "# Session Summary" in shown.out
    assert MESSAGE in shown.out
    assert MESSAGE in cli_ok("session", "expand", "chat", "archive_001").out
    assert cli_ok("session", "expand", "chat", "1", "-o", "jsonl").jsonl == [
        client.expand("chat", "1").messages[0].to_dict(),
    ]


def test_expand_prints_where_to_continue_if_not_all_messages_fit(cli_ok: Cli) -> None:
    cli_ok("session", "add-messages", "chat", "-", stdin=f'{{"role":"user","content":"{MESSAGE}"}}\n' * 3)
    done = cli_ok("session", "expand", "chat", "1-3", "--token-budget", "1")
    assert (done.out.count("billing"), done.err) == (1, "There are more messages; continue with 2-3.\n")


def test_tasks_are_listed_by_type_status_and_session(cli_ok: Cli, task_id: str) -> None:
    cli_ok("session", "add-message", "other", "--role", "user", "--content", MESSAGE)
    cli_ok("session", "commit", "other", "--wait")
    list_command = ("task", "list", "--type", "session_commit", "--status", "completed", "--resource", "chat")
    assert [row["task_id"] for row in cli_ok(*list_command, "-o", "json").json] == [task_id]
    assert [row["resource_id"] for row in cli_ok("task", "list", "-o", "jsonl").jsonl] == ["other", "chat"]
    assert len(cli_ok("task", "list", "--limit", "1", "-o", "json").json) == 1
    assert cli_ok("task", "list", "--status", "failed").out == ""
    assert task_id in cli_ok("task", "list").out


def test_watching_a_finished_task_prints_it_at_once(cli_ok: Cli, task_id: str, client: holdfast.Client) -> None:
    expected = client.get_task(task_id).to_dict()
    assert cli_ok("task", "status", task_id, "-o", "json").json == expected
    assert cli_ok("task", "watch", task_id, "-o", "json").json == expected
    table = cli_ok("task", "watch", task_id).out
    assert "completed" in table
    assert "created_at " not in table, "a table has times, not Unix seconds"


def test_a_completed_task_can_be_neither_cancelled_nor_retried(cli: Cli, task_id: str) -> None:
    for verb in ("cancel", "retry"):
        done = cli("task", verb, task_id)
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
        assert "is completed" in done.err


def test_a_failed_task_exits_with_1_and_can_be_retried_or_cancelled(
    run_cli: Cli, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = ("--path", str(tmp_path))
    run_cli(*target, "session", "add-message", "chat", "--role", "user", "--content", MESSAGE)
    with monkeypatch.context() as patched:
        for name, value in UNREACHABLE_MODEL.items():
            patched.setenv(name, value)
        failed = run_cli(*target, "session", "commit", "chat", "--wait", "-o", "json")
    assert (failed.code, failed.json["status"]) == (1, "failed")
    assert failed.err == ""
    task_id = failed.json["task_id"]
    assert run_cli(*target, "task", "watch", task_id).code == 1
    assert "127.0.0.1:9" in run_cli(*target, "task", "list", "--status", "failed").out
    assert "127.0.0.1:9" in run_cli(*target, "session", "archives", "chat").out
    assert run_cli(*target, "task", "cancel", task_id).out == f"cancelled {task_id}\n"
    assert run_cli(*target, "task", "retry", task_id).out == f"restarted {task_id}\n"
    assert run_cli(*target, "task", "watch", task_id, "-o", "json").json["status"] == "completed"


def test_the_tree_is_listed_from_the_root(cli_ok: Cli, task_id: str) -> None:
    assert [line.split()[0] for line in cli_ok("ls").out.splitlines()[1:]] == [
        "agent/",
        "resources/",
        "system/",
        "user/",
    ]
    assert [row["name"] for row in cli_ok("ls", SESSION_URI, "-o", "json").json] == ["messages.jsonl", "history"]
    assert ".overview.md" in cli_ok("ls", SESSION_URI, "--all").out
    assert "history/archive_001/.done" in cli_ok("ls", SESSION_URI, "-a", "-r").out
    lines = cli_ok("tree", "viking://user", "-L", "5").out.splitlines()
    assert [line.split("  ")[0].split()[0] for line in lines[1:3]] == ["default/", "│"]
    assert "│ │ │ history/" in "\n".join(lines)


def test_a_listing_continues_at_an_offset(cli_ok: Cli) -> None:
    for number in range(3):
        cli_ok("session", "new", "--id", f"chat_{number}")
    done = cli_ok("ls", "viking://session", "--limit", "2")
    assert ("chat_2/" in done.out, "chat_0/" in done.out) == (True, False)
    assert done.err == "There are more entries; continue with --offset 2.\n"
    rest = cli_ok("tree", "viking://session", "--offset", "2", "--limit", "1", "-o", "json")
    assert [row["rel_path"] for row in rest.json] == ["chat_1"]


def test_a_file_is_printed_exactly(cli_ok: Cli, client: holdfast.Client) -> None:
    cli_ok("session", "add-messages", "chat", "-", stdin='{"role":"user","content":"Grüße\\n\\u001b[31m"}\n' * 1_001)
    uri = f"{SESSION_URI}/messages.jsonl"
    whole = cli_ok("read", uri).out
    assert whole == client.read(uri)
    assert [json.loads(line)["seq"] for line in whole.splitlines()] == list(range(1, 1_002))
    assert cli_ok("read", uri, "--offset", "3", "--limit", "2").out == "".join(whole.splitlines(keepends=True)[3:5])
    assert cli_ok("read", uri, "-o", "json").json == whole


def test_abstract_and_overview_print_the_summaries_of_a_session_and_an_archive(
    cli_ok: Cli, task_id: str, client: holdfast.Client
) -> None:
    for uri in (SESSION_URI, f"{SESSION_URI}/history/archive_001"):
        assert cli_ok("abstract", uri).out == f"{client.abstract(uri)}\n"
        assert cli_ok("overview", uri).out == f"{client.overview(uri)}\n"


def test_a_missing_uri_exits_with_3_and_an_invalid_one_with_1(cli: Cli, chat: str) -> None:
    for args, code in (
        (("ls", "viking://session/nobodys"), 3),
        (("read", f"{SESSION_URI}/nothing"), 3),
        (("abstract", f"{SESSION_URI}/nothing"), 3),
        (("overview", "viking://resources/nothing"), 3),
        (("task", "watch", "task_none"), 3),
        (("session", "commit", "nobodys"), 3),
        (("session", "get-session-archive", chat, "archive_001"), 3),
        (("ls", "viking://elsewhere"), 1),
        (("tree", "chat"), 1),
        (("read", SESSION_URI), 1),
        (("session", "commit", chat, "--keep-recent-count", "-1"), 1),
    ):
        done = cli(*args)
        assert (done.code, done.out) == (code, ""), (args, done)
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1


def test_a_listing_runs_no_background_tasks(tmp_path: Path) -> None:
    """It would have to wait for a model. Only a command that commits or watches a task runs tasks."""
    with holdfast.connect(tmp_path, settings=holdfast.Settings(worker_threads=0)) as client:
        client.add_message("chat", "user", MESSAGE)
        task_id = str(client.commit_session("chat").task_id)

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "holdfast", "--path", str(tmp_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    assert "chat" in run("session", "list")
    assert "pending" in run("task", "status", task_id)
    assert "completed" in run("task", "watch", task_id)


def test_summaries_of_one_session_or_of_all_are_regenerated(cli_ok: Cli, cli: Cli, chat: str, task_id: str) -> None:
    assert task_id
    (task,) = cli_ok("resummarise", chat, "-o", "json").json
    assert (task["task_type"], task["status"], task["resource_id"]) == ("resummarise", "completed", chat)
    cli_ok("session", "new", "--id", "empty")
    assert [task["resource_id"] for task in cli_ok("resummarise", "--all", "-o", "json").json] == [chat]
    assert "no finished archive" in cli_ok("resummarise", "empty").err
    for wrong in (("resummarise",), ("resummarise", chat, "--all")):
        failed = cli(*wrong)
        assert failed.code == 2
        assert "give the id of a session, or --all" in failed.err
