"""Published OpenViking clients work against Holdfast as they come: the Python SDK, old and new, and the program `ov`.

Each is installed once, apart from the project's environment, in `.venv-clients`; without a registry it is left out.
"""

import fcntl
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.testing.server import running_server

NEWEST, OLDEST = "0.1.17", "0.1.0"
ROOT_KEY = "the-root-key"
NUMBERS = itertools.count(1)
CLIENTS = Path(__file__).parents[3] / ".venv-clients"
Place = dict[str, str]
"""Where to call and as whom, in the words of both clients."""


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("dev"), log_level="error") as server:
        yield server.url


@pytest.fixture(scope="module")
def api_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("api_key"), log_level="error", root_api_key=ROOT_KEY) as server:
        yield server.url


@pytest.fixture(params=["dev", "api_key"])
def alice(request: pytest.FixtureRequest) -> Place:
    """A user whom nobody knows yet: by her name, or by her key."""
    url: str = request.getfixturevalue(request.param)
    account = f"acme-{next(NUMBERS)}"
    if request.param == "dev":
        return {"url": url, "account": account, "user": "alice"}
    accounts, root = f"{url}/api/v1/admin/accounts", {"X-API-Key": ROOT_KEY}
    httpx2.post(accounts, headers=root, json={"account_id": account}).raise_for_status()
    made = httpx2.post(f"{accounts}/{account}/users", headers=root, json={"user_id": "alice"}).raise_for_status()
    return {"url": url, "api_key": made.json()["result"]["user_key"]}


@pytest.fixture
def operator(api_key: str) -> Place:
    return {"url": api_key, "api_key": ROOT_KEY}


def installed(name: str, install: Callable[[Path], None]) -> Path:
    """The folder of a client, installed by whoever comes first: tests run in several processes."""
    CLIENTS.mkdir(exist_ok=True)
    folder = CLIENTS / f"{name}-python{sys.version_info.major}.{sys.version_info.minor}"
    with (CLIENTS / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            (folder / "ready").touch()
    return folder


def pip(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries=1", "--timeout=20", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"{arguments[-1]} is not to be had here: {done.stderr.strip().splitlines()[-1]}")


def sdk(version: str) -> Path:
    """The Python that has this version of the SDK."""

    def install(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        pip("--python", str(folder / "bin/python"), "install", "--quiet", f"openviking-sdk=={version}")

    return installed(f"sdk-{version}", install) / "bin/python"


def told_by_sdk(version: str, place: Place, story: str) -> Any:
    """What the story tells: it has a `client`, and `refused` for what must fail."""
    begin = """
        import json, sys
        from openviking_sdk import SyncHTTPClient
        from openviking_sdk.errors import OpenVikingError

        def refused(ask, *given):
            try:
                ask(*given)
            except OpenVikingError as error:
                return [type(error).__name__, error.code]

        def connected(**place):
            client = SyncHTTPClient(**place)
            client.initialize()
            return client

        client = connected(**json.loads(sys.argv[1]))
        told = {}
    """
    end = "\nprint(json.dumps(told))"
    code = textwrap.dedent(begin) + textwrap.dedent(story) + end
    return json.loads(output([sdk(version), "-c", code, json.dumps(place)], home=CLIENTS))


@pytest.fixture
def ov(tmp_path: Path) -> Callable[..., Any]:
    """The program `ov` in a home of its own: `ov(place, "session", "new")` is its answer."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("ov is tried where its wheel is for: Linux on x86_64")

    def install(folder: Path) -> None:
        wanted = ("openviking/bin/", "openviking.libs/")
        pip("download", "--quiet", "--no-deps", "--only-binary=:all:", f"--dest={folder}", "openviking==0.5.2")
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(folder, [name for name in opened.namelist() if name.startswith(wanted)])
        wheel.unlink()
        (folder / "openviking/bin/ov").chmod(0o755)

    program = installed("ov-0.5.2", install) / "openviking/bin/ov"
    home = tmp_path / "home"
    (home / ".openviking").mkdir(parents=True)
    (home / ".openviking/ovcli.settings.conf").write_text('{"language": "en"}')

    def run(place: Place, *arguments: str, code: int = 0) -> Any:
        (home / ".openviking/ovcli.conf").write_text(json.dumps(place))
        printed = output([program, "-o", "json", *arguments], home=home, code=code)
        answer = json.loads(printed[printed.index("{") :])  # some commands are repeated before their answer
        return answer["error"] if code else answer["result"]

    return run


def output(command: list[Any], *, home: Path, code: int = 0) -> str:
    """What it prints, or what it complains of if it is to end with a code."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("OPENVIKING")}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**ours, "NO_PROXY": "127.0.0.1", "HOME": str(home)},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_sdk_keeps_a_session(alice: Place, version: str) -> None:
    told = told_by_sdk(
        version,
        alice,
        """
        told["up"] = client.health()
        told["made"] = client.create_session()
        told["named"] = client.create_session("chat_001")
        told["twice"] = refused(client.create_session, "chat_001")
        told["bad name"] = refused(client.create_session, "../up")
        told["missing"] = refused(client.get_session, "chat_002")
        told["exists"] = [client.session_exists("chat_001"), client.session_exists("chat_002")]
        told["created on the way"] = client.get_session("chat_003", auto_create=True)
        told["added"] = client.add_message("chat_001", "user", "How do I authenticate users?")
        told["parts"] = client.add_message("chat_001", "assistant", parts=[
            {"type": "text", "text": "Based on the guide..."},
            {"type": "context", "uri": "viking://resources/docs/auth/", "context_type": "resource", "abstract": "Auth"},
            {"type": "tool", "tool_id": "call_1", "tool_name": "search", "tool_input": {"query": "OAuth"},
             "tool_output": "Results", "tool_status": "completed"},
        ])
        told["batch"] = client.batch_add_messages("chat_001", [
            {"role": "user", "content": "Any recommendations?"}, {"role": "assistant", "content": "OAuth 2.0."},
        ])
        session = client.session("chat_001")
        told["by the session"] = session.add_message("user", "Thank you.")
        told["loaded"] = session.load()
        told["listed"] = client.list_sessions()
        client.delete_session("chat_003")
        told["deleted"] = refused(client.delete_session, "chat_003")
        told["idle"] = client.wait_processed()
        """,
    )
    assert told["up"] is True
    assert told["made"]["uri"] == f"viking://user/alice/sessions/{told['made']['session_id']}"
    assert (told["named"]["session_id"], told["named"]["user"]["user_id"]) == ("chat_001", "alice")
    assert told["twice"] == ["AlreadyExistsError", "ALREADY_EXISTS"]
    assert told["bad name"] == ["InvalidArgumentError", "INVALID_ARGUMENT"]
    assert told["missing"] == told["deleted"] == ["NotFoundError", "NOT_FOUND"]
    assert told["exists"] == [True, False]
    assert told["created on the way"]["session_id"] == "chat_003"
    assert [told[name]["message_count"] for name in ("added", "parts", "batch", "by the session")] == [1, 2, 4, 5]
    assert told["batch"]["added"] == 2
    assert (told["loaded"]["message_count"], told["loaded"]["total_message_count"]) == (5, 5)
    assert told["loaded"]["pending_tokens"] == told["by the session"]["pending_tokens"] > 0
    assert [row["session_id"] for row in told["listed"]] == ["chat_003", "chat_001", told["made"]["session_id"]]
    assert all(row["is_dir"] for row in told["listed"])


def test_the_sdk_configures_a_session(alice: Place) -> None:
    told = told_by_sdk(
        NEWEST,
        alice,
        """
        policy = {"message_count_threshold": 20, "keep_recent_count": 4}
        options = {"auto_commit_policy": policy, "memory_policy": {"self": {"enabled": True}}}
        told["made"] = client.create_session("chat_001", options)
        told["unset"] = client.update_session_config("chat_001", {"auto_commit_policy": None})
        told["set"] = client.update_session_config("chat_001", {"auto_commit_policy": {"idle_timeout_seconds": 60}})
        """,
    )
    assert told["made"]["auto_commit_policy"] == {"message_count_threshold": 20, "keep_recent_count": 4}
    assert told["made"]["memory_policy"] == {"self": {"enabled": True}}
    assert told["unset"]["auto_commit_policy"] is None
    assert told["set"]["auto_commit_policy"] == {"idle_timeout_seconds": 60}


def test_the_sdk_runs_a_server_of_many_tenants(operator: Place) -> None:
    told = told_by_sdk(
        NEWEST,
        operator,
        """
        url = json.loads(sys.argv[1])["url"]
        ann = connected(url=url, api_key=client.admin_create_account("acme", "ann")["user_key"])
        told["accounts"] = client.admin_list_accounts()
        bob_key = ann.admin_register_user("acme", "bob")["user_key"]
        bob = connected(url=url, api_key=bob_key)
        told["users"] = ann.admin_list_users("acme")
        bob.create_session("chat_001")
        told["not hers"] = refused(ann.get_session, "chat_001")
        told["not for root"] = refused(client.list_sessions)
        told["not for bob"] = refused(bob.admin_list_users, "acme")
        told["promoted"] = ann.admin_set_role("acme", "bob", "admin")
        told["now for bob"] = len(bob.admin_list_users("acme"))
        new_key = ann.admin_regenerate_key("acme", "bob")["user_key"]
        told["old key"] = refused(bob.list_sessions)
        told["new key"] = len(connected(url=url, api_key=new_key).list_sessions())
        told["healthy"] = [client.is_healthy(), client.observer.is_healthy(), ann.get_status()["is_healthy"]]
        told["queue"] = client.observer.queue
        ann.admin_remove_user("acme", "bob")
        told["left"] = [user["user_id"] for user in ann.admin_list_users("acme")]
        client.admin_delete_account("acme")
        told["gone"] = refused(ann.list_sessions)
        told["accounts left"] = [account["account_id"] for account in client.admin_list_accounts()]
        """,
    )
    assert ("acme", 1) in [(account["account_id"], account["user_count"]) for account in told["accounts"]]
    assert [(user["user_id"], user["role"]) for user in told["users"]] == [("ann", "admin"), ("bob", "user")]
    assert told["not hers"] == ["NotFoundError", "NOT_FOUND"]
    assert told["not for root"] == told["not for bob"] == ["PermissionDeniedError", "PERMISSION_DENIED"]
    assert (told["promoted"]["role"], told["now for bob"]) == ("admin", 2)
    assert told["old key"] == told["gone"] == ["UnauthenticatedError", "UNAUTHENTICATED"]
    assert told["new key"] == 1
    assert told["healthy"] == [True, True, True]
    assert told["queue"]["is_healthy"] is True
    assert told["left"] == ["ann"]
    assert "acme" not in told["accounts left"]


def test_the_program_keeps_a_session(alice: Place, ov: Callable[..., Any]) -> None:
    health = ov(alice, "health")
    assert (health["healthy"], health["user_id"]) == (True, "alice")
    made = ov(alice, "session", "new")
    ov(alice, "session", "new", "--session-id", "chat_001", "--auto-commit-policy-json", '{"keep_recent_count": 4}')
    added = ov(alice, "session", "add-message", "chat_001", "--role", "user", "--content", "How do I log in?")
    batch = ov(
        alice,
        *("session", "add-messages", "chat_001"),
        '[{"role": "assistant", "content": "With OAuth."}, {"role": "user", "content": "Thanks"}]',
    )
    assert (added["message_count"], batch["message_count"], batch["added"]) == (1, 3, 2)
    ov(alice, "session", "config", "set", "chat_001", "--no-auto-commit")
    found = ov(alice, "session", "get", "chat_001")
    assert (found["uri"], found["message_count"]) == ("viking://user/alice/sessions/chat_001", 3)
    assert [row["session_id"] for row in ov(alice, "session", "list")] == ["chat_001", made["session_id"]]
    assert ov(alice, "session", "delete", "chat_001") == {"session_id": "chat_001"}
    gone = ov(alice, "session", "get", "chat_001", code=1)
    assert (gone["code"], gone["details"]["resource"]) == ("NOT_FOUND", "chat_001")
    assert ov(alice, "system", "status") == {"initialized": True, "user": "alice"}
    assert all(counts["pending"] == 0 for counts in ov(alice, "wait").values())


def test_the_program_runs_a_server_of_many_tenants(operator: Place, ov: Callable[..., Any]) -> None:
    made = ov(operator, "admin", "create-account", "globex", "--admin", "ann")
    ann = {**operator, "api_key": made["user_key"]}
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


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_sdk_commits_a_session_and_gets_its_context_back(alice: Place, version: str) -> None:
    told = told_by_sdk(
        version,
        alice,
        """
        client.add_message("chat_001", "user", "Deploy the billing service to staging, never to production.")
        client.add_message("chat_001", "assistant", "It is deployed to staging.")
        told["committed"] = client.commit_session("chat_001")
        told["idle"] = client.wait_processed()
        told["task"] = client.get_task(told["committed"]["task_id"])
        told["tasks"] = client.list_tasks(task_type="session_commit", status="completed", resource_id="chat_001")
        told["no task"] = client.get_task("task_none")
        client.add_message("chat_001", "user", "Thank you.")
        told["context"] = client.get_session_context("chat_001", 1000)
        told["archive"] = client.get_session_archive("chat_001", "archive_001")
        told["no archive"] = refused(client.get_session_archive, "chat_001", "archive_002")
        if hasattr(client, "cancel_task"):
            told["kept"] = client.commit_session("chat_001", 5)
            told["too late"] = refused(client.cancel_task, told["committed"]["task_id"])
        """,
    )
    committed, task = told["committed"], told["task"]
    assert (committed["status"], committed["archived"]) == ("accepted", True)
    assert committed["archive_uri"] == "viking://user/alice/sessions/chat_001/history/archive_001"
    assert (task["status"], task["task_type"], task["resource_id"]) == ("completed", "session_commit", "chat_001")
    assert task["result"]["archive_uri"] == committed["archive_uri"]
    assert [row["task_id"] for row in told["tasks"]] == [committed["task_id"]]
    assert told["no task"] is None
    assert "never to production" in told["context"]["latest_archive_overview"]
    assert [message["parts"][0]["text"] for message in told["context"]["messages"]] == ["Thank you."]
    assert told["context"]["stats"]["includedArchives"] == 1
    assert (told["archive"]["archive_id"], len(told["archive"]["messages"])) == ("archive_001", 2)
    assert told["no archive"] == ["NotFoundError", "NOT_FOUND"]
    if version == NEWEST:
        assert (told["kept"]["status"], told["kept"]["reason"]) == ("skipped", "all_within_keep_window")
        assert told["too late"] == ["FailedPreconditionError", "FAILED_PRECONDITION"]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_sdk_reads_the_files_of_a_session(alice: Place, version: str) -> None:
    told = told_by_sdk(
        version,
        alice,
        """
        here = "viking://session/chat_001"
        client.add_message("chat_001", "user", "Deploy the billing service to staging, never to production.")
        client.commit_session("chat_001")
        client.wait_processed()
        told["root"] = client.ls("viking://")
        told["listed"] = client.ls(here, show_all_hidden=True)
        told["for agents"] = client.ls("viking://user/alice/sessions", output="agent")
        told["names"] = client.ls(here, simple=True, recursive=True)
        told["tree"] = client.tree(here)
        told["stat"] = client.stat(f"{here}/messages.jsonl")
        told["archived"] = client.read(f"{here}/history/archive_001/messages.jsonl", 0, 1)
        told["abstract"], told["overview"] = client.abstract(here), client.overview(here)
        told["missing"] = refused(client.read, f"{here}/nothing")
        told["nowhere"] = refused(client.ls, "viking://elsewhere")
        """,
    )
    here = "viking://user/alice/sessions/chat_001"
    assert [row["uri"] for row in told["root"]] == ["viking://user"]
    assert {row["name"]: row["isDir"] for row in told["listed"]} == {
        ".abstract.md": False,
        ".overview.md": False,
        ".meta.json": False,
        ".relations.json": False,
        "messages.jsonl": False,
        "history": True,
    }
    assert [(row["uri"], row["abstract"]) for row in told["for agents"]] == [(here, told["abstract"])]
    below = ["messages.jsonl", "history", "history/archive_001"]
    below += [f"history/archive_001/{name}" for name in ("messages.jsonl", "memory_diff.json")]
    assert told["names"] == [f"{here}/{name}" for name in below]
    assert [row["rel_path"] for row in told["tree"]] == below
    assert (told["stat"]["name"], told["stat"]["isDir"]) == ("messages.jsonl", False)
    assert "billing" in json.loads(told["archived"])["parts"][0]["text"]
    assert told["overview"].startswith("# Session Summary")
    assert told["missing"] == ["NotFoundError", "NOT_FOUND"]
    assert told["nowhere"] == ["InvalidURIError", "INVALID_URI"]


def test_the_program_commits_a_session_and_follows_its_task(alice: Place, ov: Callable[..., Any]) -> None:
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


def test_the_program_looks_at_the_files_of_a_session(alice: Place, ov: Callable[..., Any]) -> None:
    ov(alice, "session", "add-message", "chat_001", "--role", "user", "--content", "Deploy billing, never on Fridays.")
    ov(alice, "session", "commit", "chat_001")
    ov(alice, "wait")
    here = "viking://user/alice/sessions/chat_001"
    assert [row["uri"] for row in ov(alice, "ls")] == ["viking://user"]
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
