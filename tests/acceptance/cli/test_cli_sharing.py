"""Sharing on the command line, on an embedded database and through a real server."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import holdfast
from holdfast.cli import program
from holdfast.cli.options import list_commands

Cli = Callable[..., Any]

FULL_LIST = ["session", "messages", "changed", "owner", "rights", "state", "title"]


@pytest.fixture
def alice(cli_ok: Cli) -> Cli:
    """Runs commands as alice, who has the session `plan`."""

    def run(*args: str) -> Any:
        return cli_ok("--user", "alice", *args)

    run("session", "add-message", "plan", "--role", "user", "--content", "Ship on Friday.")
    return run


@pytest.fixture
def bob(cli: Cli) -> Cli:
    """Runs commands as bob, also such that fail."""
    return lambda *args: cli("--user", "bob", *args)


def test_a_collaborator_uses_a_session_with_owner_and_loses_it(alice: Cli, bob: Cli) -> None:
    assert bob("session", "get", "plan", "--owner", "alice").code == 3
    added = alice("share", "add", "plan", "bob", "--right", "read", "--right", "write")
    assert added.out == "plan is shared with bob: read, write\n"
    assert "Ship on Friday." in bob("session", "messages", "plan", "--owner", "alice").out
    answer = ("session", "add-message", "plan", "--role", "user", "--content", "Fine.")
    assert bob(*answer, "--owner", "alice").code == 0
    assert "alice/sessions/plan" in bob("session", "commit", "plan", "--owner", "alice").out
    assert alice("share", "remove", "plan", "bob").out == "plan is no longer shared with bob\n"
    assert bob("session", "messages", "plan", "--owner", "alice").code == 3


def test_a_missing_right_is_named_in_one_sentence(alice: Cli, bob: Cli) -> None:
    alice("share", "add", "plan", "bob")
    refused = bob("session", "add-message", "plan", "--owner", "alice", "--role", "user", "--content", "Fine.")
    assert (refused.code, refused.out, refused.err.count("\n")) == (4, "", 1)
    assert "bob lacks the right to write; ask its owner" in refused.err
    for command in (
        ("session", "delete", "plan"),
        ("share", "add", "plan", "carol"),
        ("share", "link", "list", "plan"),
    ):
        refused = bob(*command, "--owner", "alice")
        assert (refused.code, "only its owner may do this" in refused.err) == (4, True)


def test_collaborators_are_listed_with_their_rights_agent_and_expiry(alice: Cli, bob: Cli) -> None:
    alice("share", "add", "plan", "bob", "--right", "read", "--right", "invoke")
    alice("share", "add", "plan", "carol", "--only-agent", "reviewer", "--expires-in", "7d")
    for listed in (
        alice("share", "list", "plan", "-o", "json"),
        bob("share", "list", "plan", "-o", "json", "--owner", "alice"),
    ):
        first, second = listed.json
        assert (first["user_id"], first["rights"], first["agent_id"]) == ("bob", ["read", "invoke"], None)
        assert (second["user_id"], second["agent_id"]) == ("carol", "reviewer")
        in_a_week = datetime.now(UTC) + timedelta(days=7)
        assert abs(datetime.fromisoformat(second["expires_at"]) - in_a_week) < timedelta(minutes=5)
    lines = alice("share", "list", "plan").out.splitlines()
    assert lines[0].split() == ["user", "rights", "agent", "since", "expires"]
    assert lines[1].split()[:4] == ["bob", "read,", "invoke", "any"]


def test_a_grant_to_an_agent_opens_the_session_only_with_that_agent(alice: Cli, bob: Cli) -> None:
    alice("share", "add", "plan", "bob", "--only-agent", "reviewer")
    assert bob("session", "get", "plan", "--owner", "alice").code == 3
    assert bob("session", "get", "plan", "--owner", "alice", "--agent", "reviewer").code == 0
    assert bob("--agent", "reviewer", "session", "get", "plan", "--owner", "alice").code == 0


def test_the_list_has_owners_and_rights_only_if_it_has_a_shared_session(alice: Cli, bob: Cli) -> None:
    def header(*args: str) -> Any:
        return bob("session", "list", *args).out.splitlines()[0].split()

    bob("session", "new", "--id", "mine")
    assert header() == ["session", "messages", "changed", "state", "title"]
    alice("share", "add", "plan", "bob")
    assert header() == FULL_LIST
    assert header("--shared") == FULL_LIST
    assert header("--own") == ["session", "messages", "changed", "state", "title"]
    assert header("--q", "mine") == ["session", "messages", "changed", "state", "title"]
    assert [row["session_id"] for row in bob("session", "list", "--shared", "-o", "json").json] == ["plan"]
    assert [row["session_id"] for row in bob("session", "list", "--own", "-o", "json").json] == ["mine"]
    bob("session", "delete", "mine")
    assert header() == FULL_LIST


def test_the_list_of_a_user_with_another_internal_id_has_no_owners(cli_ok: Cli, account: str, cli: Cli) -> None:
    cli_ok("session", "new")  # creates the account
    cli_ok("admin", "user", "create", account, "bob")
    cli_ok("admin", "user", "delete", account, "bob")
    cli_ok("--user", "bob", "session", "new", "--id", "mine")
    (row,) = cli_ok("--user", "bob", "session", "list", "-o", "json").json
    assert row["owner"].startswith("bob~")
    assert "owner" not in cli_ok("--user", "bob", "session", "list").out


def test_messages_of_others_are_shown_with_author_and_agent(alice: Cli, bob: Cli) -> None:
    assert alice("session", "messages", "plan").out.splitlines()[0].split() == ["seq", "role", "time", "text"]
    alice("share", "add", "plan", "bob", "--right", "read", "--right", "write")
    bob(
        "--agent",
        "helper",
        "session",
        "add-messages",
        "plan",
        '[{"role":"user","content":"Fine."}]',
        "--owner",
        "alice",
    )
    header, first, second = alice("session", "messages", "plan").out.splitlines()
    assert header.split() == ["seq", "role", "author", "time", "text"]
    assert ("bob/helper" in first, "bob/helper" in second) == (False, True)
    assert "bob/helper" in alice("session", "get-session-context", "plan").out


def test_a_collaborator_leaves_a_session(alice: Cli, bob: Cli) -> None:
    alice("share", "add", "plan", "bob")
    assert bob("share", "leave", "plan", "--owner", "alice").out == "left plan of alice\n"
    assert bob("session", "list", "-o", "json").json == []
    assert bob("share", "leave", "plan", "--owner", "alice").code == 3


def test_a_transferred_session_belongs_to_the_new_owner(alice: Cli, bob: Cli) -> None:
    moved = alice("share", "transfer", "plan", "bob", "--keep", "read")
    assert moved.out == "bob owns plan, now viking://user/bob/sessions/plan\n"
    assert bob("session", "get", "plan").code == 0
    (row,) = alice("session", "list", "-o", "json").json
    assert (row["owner"], row["rights"]) == ("bob", ["read"])


def test_a_session_is_transferred_without_keeping_access(alice: Cli, bob: Cli) -> None:
    alice("share", "transfer", "plan", "bob", "--keep", "none")
    assert alice("session", "list", "-o", "json").json == []
    assert [row["session_id"] for row in bob("session", "list", "-o", "json").json] == ["plan"]


def test_a_share_link_is_created_listed_and_revoked(alice: Cli) -> None:
    created = alice("share", "link", "create", "plan", "--expires-in", "1h")
    assert "hfl." in created.out
    assert created.err == "Save the token now: it cannot be shown again.\n"
    (link,) = alice("share", "link", "list", "plan", "-o", "json").json
    assert (link["rights"], link["use_count"], "token" in link) == (["read"], 0, False)
    assert link["id"] in alice("share", "link", "list", "plan").out
    assert alice("share", "link", "revoke", "plan", link["id"]).out == f"revoked {link['id']}\n"
    assert alice("share", "link", "list", "plan", "-o", "json").json == []


@pytest.mark.parametrize("cli_target", ["remote"], indirect=True)
def test_a_link_opens_its_session_in_place_of_a_key(alice: Cli, run_cli: Cli, cli_target: Any) -> None:
    link = alice("share", "link", "create", "plan", "-o", "json").json
    guest = (*cli_target, "--api-key", link["token"])
    assert "Ship on Friday." in run_cli(*guest, "session", "messages", "plan").out
    assert run_cli(*guest, "session", "list").out.splitlines()[0].split() == FULL_LIST
    refused = run_cli(*guest, "session", "add-message", "plan", "--role", "user", "--content", "Hi")
    assert (refused.code, "lacks the right to write" in refused.err) == (4, True)
    assert run_cli(*guest, "ls", "viking://user/alice/sessions", "-o", "json").json[0]["name"] == "plan"
    alice("share", "link", "revoke", "plan", link["id"])
    assert run_cli(*guest, "session", "messages", "plan").code == 4


def test_the_status_shows_the_agent_unless_it_is_the_default(cli_ok: Cli) -> None:
    assert "agent_id" not in cli_ok("status").out
    assert cli_ok("status", "-o", "json").json["agent_id"] == "default"
    shown = [line.split() for line in cli_ok("--agent", "reviewer", "status").out.splitlines()]
    assert ["agent_id", "reviewer"] in shown


def test_a_new_user_takes_over_the_sessions_of_a_deleted_one(cli_ok: Cli, account: str) -> None:
    cli_ok("--user", "bob", "session", "new", "--id", "chat")
    cli_ok("admin", "user", "create", account, "bob")
    assert cli_ok("admin", "user", "list", account).out.splitlines()[0].split()[-2:] == ["internal", "id"]
    assert cli_ok("admin", "user", "delete", account, "bob").out == "deleted bob; the internal id was bob\n"
    again = cli_ok("admin", "user", "create", account, "bob", "-o", "json").json
    assert again["internal_id"] != "bob"
    assert cli_ok("--user", "bob", "session", "list", "-o", "json").json == []
    cli_ok("admin", "user", "create", account, "robert", "--internal-id", "bob")
    (row,) = cli_ok("--user", "robert", "session", "list", "-o", "json").json
    assert (row["session_id"], row["owner"]) == ("chat", "bob")


def test_a_user_becomes_an_auditor(cli_ok: Cli, account: str, client: holdfast.Client) -> None:
    cli_ok("session", "new")
    cli_ok("admin", "user", "create", account, "ann", "--role", "auditor")
    cli_ok("admin", "user", "create", account, "eve")
    cli_ok("admin", "user", "set-role", account, "eve", "auditor")
    assert {user.role for user in client.admin.list_users(account)} == {"auditor"}


def test_every_command_on_a_session_accepts_an_owner() -> None:
    without = {
        command.name
        for command in list_commands(program())
        if "session_id" in {param.name for param in command.params if param.param_type_name == "argument"}
        and "owner" not in {param.name for param in command.params}
    }
    assert without == {"export"}  # an export has the caller's own sessions
