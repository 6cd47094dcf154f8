"""Published OpenViking clients work with Holdfast unchanged: the oldest and newest Python SDK, and the program `ov`."""

import json
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.server import running_server

NEWEST, OLDEST = "0.1.17", "0.1.0"
ClientConfig = dict[str, str]
"""The server's URL and the credentials, with the option names of both clients."""
BEGIN_OF_SCRIPT = """
import json, sys
from openviking_sdk import SyncHTTPClient
from openviking_sdk.errors import OpenVikingError

def error_of(call, *arguments):
    try:
        call(*arguments)
    except OpenVikingError as error:
        return [type(error).__name__, error.code]

def connect(**config):
    client = SyncHTTPClient(**config)
    client.initialize()
    return client

client = connect(**json.loads(sys.argv[1]))
results = {}
"""
END_OF_SCRIPT = "\nprint(json.dumps(results))"


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("dev"), log_level="error") as server:
        yield server.url


@pytest.fixture(params=["dev", "api_key"])
def alice(request: pytest.FixtureRequest, account: str) -> ClientConfig:
    """A new user, identified by her name or by her key."""
    if request.param == "dev":
        return {"url": request.getfixturevalue("dev"), "account": account, "user": "alice"}
    keys = request.getfixturevalue("keys")
    return {"url": request.getfixturevalue("api_key_server"), "api_key": keys["alice"]}


@pytest.fixture
def operator(api_key_server: str, keys: dict[str, str]) -> ClientConfig:
    return {"url": api_key_server, "api_key": keys["root"]}


@pytest.fixture
def run_command(tmp_path: Path, client_environment: Callable[[Path], dict[str, str]]) -> Callable[..., str]:
    """Runs a command and returns its standard output, or its standard error if `code` is not 0."""

    def run(command: list[Any], code: int = 0) -> str:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=client_environment(tmp_path),
        )
        assert result.returncode == code, result.stdout + result.stderr
        return result.stderr if code else result.stdout

    return run


@pytest.fixture
def run_with_sdk(sdk_python: Callable[[str], Path], run_command: Callable[..., str]) -> Callable[..., Any]:
    """Runs a script with a version of the SDK and returns its `results`.

    The script has a `client`, and `error_of` for calls that must fail.
    """

    def run(version: str, config: ClientConfig, script: str) -> Any:
        code = BEGIN_OF_SCRIPT + textwrap.dedent(script) + END_OF_SCRIPT
        return json.loads(run_command([sdk_python(version), "-c", code, json.dumps(config)]))

    return run


@pytest.fixture
def ov(tmp_path: Path, ov_program: Path, run_command: Callable[..., str]) -> Callable[..., Any]:
    """Runs the program `ov` in its own home folder: `ov(config, "session", "new")` returns its result."""
    settings = tmp_path / ".openviking"
    settings.mkdir()
    (settings / "ovcli.settings.conf").write_text('{"language": "en"}')

    def run(config: ClientConfig, *arguments: str, code: int = 0) -> Any:
        (settings / "ovcli.conf").write_text(json.dumps(config))
        printed = run_command([ov_program, "-o", "json", *arguments], code=code)
        response = json.loads(printed[printed.index("{") :])  # some commands print themselves first
        return response["error"] if code else response["result"]

    return run


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_sdk_creates_sessions_and_adds_messages(
    alice: ClientConfig, version: str, run_with_sdk: Callable[..., Any]
) -> None:
    results = run_with_sdk(
        version,
        alice,
        """
        results["up"] = client.health()
        results["created"] = client.create_session()
        results["named"] = client.create_session("chat_001")
        results["duplicate"] = error_of(client.create_session, "chat_001")
        results["bad name"] = error_of(client.create_session, "../up")
        results["missing"] = error_of(client.get_session, "chat_002")
        results["exists"] = [client.session_exists("chat_001"), client.session_exists("chat_002")]
        results["auto-created"] = client.get_session("chat_003", auto_create=True)
        results["added"] = client.add_message("chat_001", "user", "How do I authenticate users?")
        results["parts"] = client.add_message("chat_001", "assistant", parts=[
            {"type": "text", "text": "Based on the guide..."},
            {"type": "context", "uri": "viking://resources/docs/auth/", "context_type": "resource", "abstract": "Auth"},
            {"type": "tool", "tool_id": "call_1", "tool_name": "search", "tool_input": {"query": "OAuth"},
             "tool_output": "Results", "tool_status": "completed"},
        ])
        results["batch"] = client.batch_add_messages("chat_001", [
            {"role": "user", "content": "Any recommendations?"}, {"role": "assistant", "content": "OAuth 2.0."},
        ])
        session = client.session("chat_001")
        results["session handle"] = session.add_message("user", "Thank you.")
        results["loaded"] = session.load()
        results["listed"] = client.list_sessions()
        client.delete_session("chat_003")
        results["deleted"] = error_of(client.delete_session, "chat_003")
        results["idle"] = client.wait_processed()
        """,
    )
    assert results["up"] is True
    assert results["created"]["uri"] == f"viking://user/alice/sessions/{results['created']['session_id']}"
    assert (results["named"]["session_id"], results["named"]["user"]["user_id"]) == ("chat_001", "alice")
    assert results["duplicate"] == ["AlreadyExistsError", "ALREADY_EXISTS"]
    assert results["bad name"] == ["InvalidArgumentError", "INVALID_ARGUMENT"]
    assert results["missing"] == results["deleted"] == ["NotFoundError", "NOT_FOUND"]
    assert results["exists"] == [True, False]
    assert results["auto-created"]["session_id"] == "chat_003"
    assert [results[name]["message_count"] for name in ("added", "parts", "batch", "session handle")] == [1, 2, 4, 5]
    assert results["batch"]["added"] == 2
    assert (results["loaded"]["message_count"], results["loaded"]["total_message_count"]) == (5, 5)
    assert results["loaded"]["pending_tokens"] == results["session handle"]["pending_tokens"] > 0
    assert [row["session_id"] for row in results["listed"]] == [
        "chat_003",
        "chat_001",
        results["created"]["session_id"],
    ]
    assert all(row["is_dir"] for row in results["listed"])


def test_the_sdk_configures_a_session(alice: ClientConfig, run_with_sdk: Callable[..., Any]) -> None:
    results = run_with_sdk(
        NEWEST,
        alice,
        """
        policy = {"message_count_threshold": 20, "keep_recent_count": 4}
        options = {"auto_commit_policy": policy, "memory_policy": {"self": {"enabled": True}}}
        results["created"] = client.create_session("chat_001", options)
        results["unset"] = client.update_session_config("chat_001", {"auto_commit_policy": None})
        results["set"] = client.update_session_config("chat_001", {"auto_commit_policy": {"idle_timeout_seconds": 60}})
        """,
    )
    assert results["created"]["auto_commit_policy"] == {"message_count_threshold": 20, "keep_recent_count": 4}
    assert results["created"]["memory_policy"] == {"self": {"enabled": True}}
    assert results["unset"]["auto_commit_policy"] is None
    assert results["set"]["auto_commit_policy"] == {"idle_timeout_seconds": 60}


def test_the_sdk_manages_accounts_and_users(operator: ClientConfig, run_with_sdk: Callable[..., Any]) -> None:
    results = run_with_sdk(
        NEWEST,
        operator,
        """
        url = json.loads(sys.argv[1])["url"]
        ann = connect(url=url, api_key=client.admin_create_account("acme", "ann")["user_key"])
        results["accounts"] = client.admin_list_accounts()
        bob_key = ann.admin_register_user("acme", "bob")["user_key"]
        bob = connect(url=url, api_key=bob_key)
        results["users"] = ann.admin_list_users("acme")
        bob.create_session("chat_001")
        results["not of ann"] = error_of(ann.get_session, "chat_001")
        results["not for root"] = error_of(client.list_sessions)
        results["not for bob"] = error_of(bob.admin_list_users, "acme")
        results["promoted"] = ann.admin_set_role("acme", "bob", "admin")
        results["now for bob"] = len(bob.admin_list_users("acme"))
        new_key = ann.admin_regenerate_key("acme", "bob")["user_key"]
        results["old key"] = error_of(bob.list_sessions)
        results["new key"] = len(connect(url=url, api_key=new_key).list_sessions())
        results["healthy"] = [client.is_healthy(), client.observer.is_healthy(), ann.get_status()["is_healthy"]]
        results["queue"] = client.observer.queue
        ann.admin_remove_user("acme", "bob")
        results["users left"] = [user["user_id"] for user in ann.admin_list_users("acme")]
        client.admin_delete_account("acme")
        results["deleted account"] = error_of(ann.list_sessions)
        results["accounts left"] = [account["account_id"] for account in client.admin_list_accounts()]
        """,
    )
    assert ("acme", 1) in [(account["account_id"], account["user_count"]) for account in results["accounts"]]
    assert [(user["user_id"], user["role"]) for user in results["users"]] == [("ann", "admin"), ("bob", "user")]
    assert results["not of ann"] == ["NotFoundError", "NOT_FOUND"]
    assert results["not for root"] == results["not for bob"] == ["PermissionDeniedError", "PERMISSION_DENIED"]
    assert (results["promoted"]["role"], results["now for bob"]) == ("admin", 2)
    assert results["old key"] == results["deleted account"] == ["UnauthenticatedError", "UNAUTHENTICATED"]
    assert results["new key"] == 1
    assert results["healthy"] == [True, True, True]
    assert results["queue"]["is_healthy"] is True
    assert results["users left"] == ["ann"]
    assert "acme" not in results["accounts left"]


def test_ov_creates_sessions_and_adds_messages(alice: ClientConfig, ov: Callable[..., Any]) -> None:
    health = ov(alice, "health")
    assert (health["healthy"], health["user_id"]) == (True, "alice")
    created = ov(alice, "session", "new")
    ov(alice, "session", "new", "--session-id", "chat_001", "--auto-commit-policy-json", '{"keep_recent_count": 4}')
    added = ov(alice, "session", "add-message", "chat_001", "--role", "user", "--content", "How do I log in?")
    batch = ov(
        alice,
        *("session", "add-messages", "chat_001"),
        '[{"role": "assistant", "content": "With OAuth."}, {"role": "user", "content": "Thanks"}]',
    )
    assert (added["message_count"], batch["message_count"], batch["added"]) == (1, 3, 2)
    ov(alice, "session", "config", "set", "chat_001", "--no-auto-commit")
    session = ov(alice, "session", "get", "chat_001")
    assert (session["uri"], session["message_count"]) == ("viking://user/alice/sessions/chat_001", 3)
    assert [row["session_id"] for row in ov(alice, "session", "list")] == ["chat_001", created["session_id"]]
    assert ov(alice, "session", "delete", "chat_001") == {"session_id": "chat_001"}
    missing = ov(alice, "session", "get", "chat_001", code=1)
    assert (missing["code"], missing["details"]["resource"]) == ("NOT_FOUND", "chat_001")
    assert ov(alice, "system", "status") == {"initialized": True, "user": "alice"}
    assert all(counts["pending"] == 0 for counts in ov(alice, "wait").values())


def test_ov_manages_accounts_and_users(operator: ClientConfig, ov: Callable[..., Any]) -> None:
    created = ov(operator, "admin", "create-account", "globex", "--admin", "ann")
    ann = {**operator, "api_key": created["user_key"]}
    bob = {**operator, "api_key": ov(ann, "admin", "register-user", "globex", "bob")["user_key"]}
    assert [user["user_id"] for user in ov(ann, "admin", "list-users", "globex")] == ["ann", "bob"]
    ov(bob, "session", "new", "--session-id", "chat_001")
    assert ov(ann, "session", "get", "chat_001", code=1)["code"] == "NOT_FOUND"
    assert ov(bob, "admin", "list-users", "globex", code=1)["code"] == "PERMISSION_DENIED"
    ov(ann, "admin", "remove-user", "globex", "bob")
    assert ov(bob, "session", "list", code=1)["code"] == "UNAUTHENTICATED"
    ov(operator, "admin", "delete-account", "globex")
    assert "globex" not in [account["account_id"] for account in ov(operator, "admin", "list-accounts")]
    assert ov(operator, "status")["is_healthy"] is True


def test_ov_shows_the_state_of_every_component(
    alice: ClientConfig, ov: Callable[..., Any], ov_program: Path, run_command: Callable[..., str]
) -> None:
    ov(alice, "session", "add-message", "chat_001", "--role", "user", "--content", "The code of the safe is 4711.")
    ov(alice, "wait")
    ov(alice, "search", "code of the safe")
    printed = run_command([ov_program, "status"])
    state = printed.partition("System")[2]  # before it are the settings of ov itself
    assert "Connected (Healthy)" in state
    assert "unknown" not in state.lower()
    for summary in ("0 pending, 0 running, 0 errors", "1 collection, 1 vectors", "1 queries, 0.0% zero-result rate"):
        assert summary in state
    for component in ("queue", "vikingdb", "models", "retrieval", "filesystem"):
        assert ov(alice, "observer", component)["is_healthy"] is True


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_sdk_finds_and_searches(alice: ClientConfig, version: str, run_with_sdk: Callable[..., Any]) -> None:
    results = run_with_sdk(
        version,
        alice,
        """
        client.add_message("chat_001", "user", "The code of the blue safe is 4711.")
        client.add_message("chat_002", "user", "What is the code of the blue safe?")
        results["found"] = client.find("blue safe", target_uri="viking://user/memories/")
        results["searched"] = client.search("code of the blue safe", limit=3)
        results["completed"] = client.search("And its colour?", session_id="chat_002")
        results["missing session"] = client.search("code", session_id="chat_003")
        results["empty"] = error_of(client.find, "")
        """,
    )
    assert results["found"] == {"memories": [], "resources": [], "skills": [], "total": 0}
    assert results["searched"]["total"] == len(results["searched"]["messages"]) == 2
    assert {hit["session_id"] for hit in results["searched"]["messages"]} == {"chat_001", "chat_002"}
    assert "safe" in results["completed"]["query_plan"]["added"]
    assert results["missing session"]["memories"] == []
    assert results["empty"] == ["InvalidArgumentError", "INVALID_ARGUMENT"]


def test_the_sdk_gets_a_text_for_a_prompt(alice: ClientConfig, run_with_sdk: Callable[..., Any]) -> None:
    results = run_with_sdk(
        NEWEST,
        alice,
        """
        from openviking_sdk import SearchContextOptions
        client.add_message("chat_001", "user", "The code of the blue safe is 4711.")
        context = client.search_context("code of the blue safe", options=SearchContextOptions(max_tokens=500))
        results["context"] = {name: context[name] for name in ("entries", "rendered", "stats")}
        """,
    )
    context = results["context"]
    assert [entry["uri"] for entry in context["entries"]] == ["viking://user/alice/sessions/chat_001#1"]
    assert context["entries"][0].keys() >= {"uri", "category", "score", "detail", "text", "origin"}
    assert "4711" in context["rendered"]
    assert context["stats"]["max_tokens"] == 500
    assert context["stats"]["returned"] == 1


def test_ov_finds_and_searches(alice: ClientConfig, ov: Callable[..., Any]) -> None:
    ov(alice, "session", "add-message", "chat_001", "--role", "user", "--content", "The code of the safe is 4711.")
    options = ("-n", "5", "-t", "0.1", "-L", "0,1,2", "--context-type", "memory,resource", "--after", "7d")
    found = ov(alice, "find", "code", *options, "--read-content")
    assert (found["memories"], found["resources"], found["skills"], found["total"]) == ([], [], [], 0)
    searched = ov(alice, "search", "code of the safe", "--session-id", "chat_001")
    assert searched["memories"] == []
    assert [hit["seq"] for hit in searched["messages"]] == [1]
    assert ov(alice, "find", " ", code=1)["code"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_sdk_commits_a_session_and_reads_its_context(
    alice: ClientConfig, version: str, run_with_sdk: Callable[..., Any]
) -> None:
    results = run_with_sdk(
        version,
        alice,
        """
        client.add_message("chat_001", "user", "Deploy the billing service to staging, never to production.")
        client.add_message("chat_001", "assistant", "It is deployed to staging.")
        results["committed"] = client.commit_session("chat_001")
        results["idle"] = client.wait_processed()
        results["task"] = client.get_task(results["committed"]["task_id"])
        results["tasks"] = client.list_tasks(task_type="session_commit", status="completed", resource_id="chat_001")
        results["no task"] = client.get_task("task_none")
        client.add_message("chat_001", "user", "Thank you.")
        results["context"] = client.get_session_context("chat_001", 1000)
        results["archive"] = client.get_session_archive("chat_001", "archive_001")
        results["no archive"] = error_of(client.get_session_archive, "chat_001", "archive_002")
        if hasattr(client, "cancel_task"):
            results["kept"] = client.commit_session("chat_001", 5)
            results["cancel completed"] = error_of(client.cancel_task, results["committed"]["task_id"])
        """,
    )
    committed, task = results["committed"], results["task"]
    assert (committed["status"], committed["archived"]) == ("accepted", True)
    assert committed["archive_uri"] == "viking://user/alice/sessions/chat_001/history/archive_001"
    assert (task["status"], task["task_type"], task["resource_id"]) == ("completed", "session_commit", "chat_001")
    assert task["result"]["archive_uri"] == committed["archive_uri"]
    assert [row["task_id"] for row in results["tasks"]] == [committed["task_id"]]
    assert results["no task"] is None
    assert "never to production" in results["context"]["latest_archive_overview"]
    assert [message["parts"][0]["text"] for message in results["context"]["messages"]] == ["Thank you."]
    assert results["context"]["stats"]["includedArchives"] == 1
    assert (results["archive"]["archive_id"], len(results["archive"]["messages"])) == ("archive_001", 2)
    assert results["no archive"] == ["NotFoundError", "NOT_FOUND"]
    if version == NEWEST:
        assert (results["kept"]["status"], results["kept"]["reason"]) == ("skipped", "all_within_keep_window")
        assert results["cancel completed"] == ["FailedPreconditionError", "FAILED_PRECONDITION"]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_sdk_reads_the_files_of_a_session(
    alice: ClientConfig, version: str, run_with_sdk: Callable[..., Any]
) -> None:
    results = run_with_sdk(
        version,
        alice,
        """
        here = "viking://session/chat_001"
        client.add_message("chat_001", "user", "Deploy the billing service to staging, never to production.")
        client.commit_session("chat_001")
        client.wait_processed()
        results["root"] = client.ls("viking://")
        results["listed"] = client.ls(here, show_all_hidden=True)
        results["for agents"] = client.ls("viking://user/alice/sessions", output="agent")
        results["names"] = client.ls(here, simple=True, recursive=True)
        results["tree"] = client.tree(here)
        results["stat"] = client.stat(f"{here}/messages.jsonl")
        results["archived"] = client.read(f"{here}/history/archive_001/messages.jsonl", 0, 1)
        results["abstract"], results["overview"] = client.abstract(here), client.overview(here)
        results["missing"] = error_of(client.read, f"{here}/nothing")
        results["nowhere"] = error_of(client.ls, "viking://elsewhere")
        """,
    )
    here = "viking://user/alice/sessions/chat_001"
    assert [row["name"] for row in results["root"]] == ["agent", "resources", "system", "user"]
    assert {row["name"]: row["isDir"] for row in results["listed"]} == {
        ".abstract.md": False,
        ".overview.md": False,
        ".meta.json": False,
        ".relations.json": False,
        "messages.jsonl": False,
        "history": True,
    }
    assert [(row["uri"], row["abstract"]) for row in results["for agents"]] == [(here, results["abstract"])]
    below = ["messages.jsonl", "history", "history/archive_001"]
    below += [f"history/archive_001/{name}" for name in ("messages.jsonl", "memory_diff.json")]
    assert results["names"] == [f"{here}/{name}" for name in below]
    assert [row["rel_path"] for row in results["tree"]] == below
    assert (results["stat"]["name"], results["stat"]["isDir"]) == ("messages.jsonl", False)
    assert "billing" in json.loads(results["archived"])["parts"][0]["text"]
    assert results["overview"].startswith("# Session Summary")
    assert results["missing"] == ["NotFoundError", "NOT_FOUND"]
    assert results["nowhere"] == ["InvalidURIError", "INVALID_URI"]


def test_ov_commits_a_session_and_reads_its_task(alice: ClientConfig, ov: Callable[..., Any]) -> None:
    ov(alice, "session", "add-message", "chat_001", "--role", "user", "--content", "Deploy billing, never on Fridays.")
    committed = ov(alice, "session", "commit", "chat_001")
    assert all(counts["pending"] == 0 for counts in ov(alice, "wait").values())
    assert ov(alice, "task", "status", committed["task_id"])["status"] == "completed"
    assert [row["task_id"] for row in ov(alice, "task", "list")] == [committed["task_id"]]
    assert ov(alice, "task", "list", "--status", "failed") == []
    assert ov(alice, "task", "cancel", committed["task_id"], code=1)["code"] == "FAILED_PRECONDITION"
    context = ov(alice, "session", "get-session-context", "chat_001", "--token-budget", "1000")
    assert "never on Fridays" in context["latest_archive_overview"]
    archive = ov(alice, "session", "get-session-archive", "chat_001", "archive_001")
    assert (archive["archive_id"], len(archive["messages"])) == ("archive_001", 1)


def test_ov_reads_the_files_of_a_session(alice: ClientConfig, ov: Callable[..., Any]) -> None:
    ov(alice, "session", "add-message", "chat_001", "--role", "user", "--content", "Deploy billing, never on Fridays.")
    ov(alice, "session", "commit", "chat_001")
    ov(alice, "wait")
    here = "viking://user/alice/sessions/chat_001"
    assert [row["uri"] for row in ov(alice, "ls")] == [
        f"viking://{name}" for name in ("agent", "resources", "system", "user")
    ]
    assert [row["uri"] for row in ov(alice, "ls", here)] == [f"{here}/messages.jsonl", f"{here}/history"]
    assert f"{here}/.overview.md" in [row["uri"] for row in ov(alice, "ls", here, "--all")]
    assert f"{here}/history/archive_001" in [row["uri"] for row in ov(alice, "tree", "viking://session/chat_001")]
    assert ov(alice, "stat", here)["isDir"] is True
    line = ov(alice, "read", f"{here}/history/archive_001/messages.jsonl", "--offset", "0", "--limit", "1")
    assert json.loads(line)["role"] == "user"
    assert ov(alice, "abstract", here) == ov(alice, "read", f"{here}/.abstract.md")
    assert ov(alice, "overview", here).startswith("# Session Summary")
    assert ov(alice, "read", "viking://session/nobodys", code=1)["code"] == "NOT_FOUND"
    assert ov(alice, "ls", "viking://elsewhere", code=1)["code"] == "INVALID_URI"
