"""Every command, on an embedded database and through a real server. Each test has an account of its own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engine.tree import mounts
from holdfast.engine.tree.mounts import Mount
from holdfast.engine.tree.nodes import Folder, small_folder, text_file
from holdfast.model.identity import Principal
from holdfast.store.database import Tx

Cli = Callable[..., Any]


def test_the_basic_session_commands_work_together(cli_ok: Cli, client: holdfast.Client) -> None:
    session_id = cli_ok("session", "new", "-o", "json").json["session_id"]
    cli_ok("session", "add-message", session_id, "--role", "user", "--content", "How do I authenticate users?")
    pair = '[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]'
    cli_ok("session", "add-messages", session_id, pair)
    texts = [message.text for message in client.session(session_id).messages]
    assert texts == ["How do I authenticate users?", "Hello", "Hi"]
    assert cli_ok("session", "get", session_id, "-o", "json").json["message_count"] == 3
    assert session_id in cli_ok("session", "list").out
    cli_ok("session", "delete", session_id)
    assert cli_ok("session", "list", "-o", "json").json == []


def test_a_session_is_created_with_its_id_title_and_metadata(cli_ok: Cli, client: holdfast.Client) -> None:
    done = cli_ok("session", "new", "--id", "chat", "--title", "Login fails", "--metadata", '{"topic":"login"}')
    assert "Login fails" in done.out
    info = client.get_session("chat")
    assert (info.title, info.metadata) == ("Login fails", {"topic": "login"})


def test_json_output_equals_the_json_of_the_http_api(cli_ok: Cli, client: holdfast.Client) -> None:
    cli_ok("session", "new", "--session-id", "chat")
    cli_ok("session", "add-message", "chat", "--role", "user", "--content", "Grüße 😀")
    assert cli_ok("session", "get", "chat", "-o", "json").json == client.get_session("chat").to_dict()
    assert cli_ok("session", "messages", "chat", "-o", "json").json == client.get_messages("chat").to_dict()
    assert cli_ok("session", "list", "-o", "json").json == [row.to_dict() for row in client.list_sessions()]
    assert cli_ok("audit", "list", "-o", "json").json == client.admin.list_audit().to_dict()


LISTINGS = [
    ("session", "list"),
    ("session", "messages", "chat"),
    ("admin", "account", "list"),
    ("admin", "user", "list", "ACCOUNT"),
    ("admin", "key", "list", "ACCOUNT", "ann"),
    ("audit", "list"),
    ("doctor",),
]


@pytest.mark.parametrize("command", LISTINGS, ids=" ".join)
def test_every_listing_has_the_three_output_formats(command: tuple[str, ...], cli_ok: Cli, account: str) -> None:
    args = [account if word == "ACCOUNT" else word for word in command]
    cli_ok("session", "add-messages", "chat", '[{"role":"user","content":"a"},{"role":"user","content":"b"}]')
    cli_ok("admin", "user", "create", account, "ann")
    document = cli_ok(*args, "-o", "json").json
    listed = document if isinstance(document, list) else next(v for v in document.values() if isinstance(v, list))
    lines = cli_ok(*args, "-o", "jsonl").jsonl
    assert len(lines) == len(listed) >= 1
    assert lines[0].keys() == listed[0].keys()
    table = cli_ok(*args).out.splitlines()
    assert len(table) == len(listed) + (command != ("doctor",))
    assert "\x1b" not in "".join(table)


DETAILS = [("session", "get", "chat"), ("status",), ("version",)]


@pytest.mark.parametrize("command", DETAILS, ids=" ".join)
def test_a_single_result_has_the_three_output_formats(command: tuple[str, ...], cli_ok: Cli) -> None:
    cli_ok("session", "new", "--id", "chat")
    assert cli_ok(*command, "-o", "json").json == cli_ok(*command, "-o", "jsonl").jsonl[0]
    assert cli_ok(*command).out.count("\n") >= 1


def test_shared_options_work_before_and_after_the_command_and_the_last_wins(cli_ok: Cli) -> None:
    assert cli_ok("-o", "json", "session", "list").json == []
    assert cli_ok("session", "list", "-o", "json").json == []
    assert cli_ok("-o", "table", "session", "list", "--output", "json").json == []


def test_a_truncated_list_prints_a_notice_and_all_lists_everything(cli_ok: Cli) -> None:
    for number in range(3):
        cli_ok("session", "new", "--id", f"chat_{number}", "--title", f"number {number}")
    some = cli_ok("session", "list", "--limit", "2", "-o", "jsonl")
    assert [row["session_id"] for row in some.jsonl] == ["chat_2", "chat_1"]
    assert "--all" in some.err
    everything = cli_ok("session", "list", "--all", "-o", "json")
    assert (len(everything.json), everything.err) == (3, "")
    assert [row["session_id"] for row in cli_ok("session", "list", "--q", "number 1", "-o", "json").json] == ["chat_1"]
    assert cli_ok("session", "list", "--state", "archived", "-o", "json").json == []


def test_all_shows_the_messages_of_all_pages(cli_ok: Cli, client: holdfast.Client) -> None:
    for number in range(11):
        client.batch_add_messages("long", [{"role": "user", "content": f"{number}-{n}"} for n in range(100)])
    page = cli_ok("session", "messages", "long", "-o", "jsonl")
    assert (len(page.jsonl), "--first 1001" in page.err) == (1_000, True)
    assert [row["seq"] for row in cli_ok("session", "messages", "long", "--all", "-o", "jsonl").jsonl] == [
        *range(1, 1_101)
    ]
    document = cli_ok("session", "messages", "long", "--all", "-o", "json").json
    assert (len(document["messages"]), document["next_seq"]) == (1_100, None)
    assert cli_ok("session", "messages", "long", "--all").out.count("\n") == 1_101


def test_messages_are_selected_by_seq_and_by_words(cli_ok: Cli) -> None:
    cli_ok("session", "add-messages", "chat", '[{"role":"user","content":"red apple"}]')
    pears = '{"role":"user","content":"green pear"}\n{"role":"user","content":"red pear"}\n'
    cli_ok("session", "add-messages", "chat", "-", stdin=pears)

    def seqs(*args: str) -> list[int]:
        return [row["seq"] for row in cli_ok("session", "messages", "chat", "-o", "jsonl", *args).jsonl]

    assert seqs() == [1, 2, 3]
    assert seqs("--first", "2") == [2, 3]
    assert seqs("--first", "2", "--last", "2") == [2]
    assert seqs("--q", "pear red") == [3]
    assert seqs("--live", "--limit", "1") == [1]


def test_a_table_of_messages_describes_parts_that_are_not_text(cli_ok: Cli) -> None:
    parts = [
        {"type": "text", "text": "two\nlines"},
        {"type": "tool", "tool_name": "search", "tool_status": "completed", "tool_output": "x"},
        {"type": "context", "uri": "viking://resources/a.md", "context_type": "resource"},
        {"type": "image", "url": "file:///a.png", "description": "the login page"},
    ]
    cli_ok("session", "add-message", "chat", "--role", "assistant", "--parts", json.dumps(parts))
    table = cli_ok("session", "messages", "chat").out
    assert "two lines [search: completed] [resource viking://resources/a.md] [image the login page]" in table


def test_control_characters_in_stored_text_are_not_printed(cli_ok: Cli) -> None:
    cli_ok(
        "session", "add-message", "chat", "--role", "user", "--content", "-", stdin="\x1b[2J\x07\u202egnp.exe \u009b31m"
    )
    table = cli_ok("session", "messages", "chat").out
    assert not set(table) & set("\x1b\x07\u202e\u009b")
    assert "gnp.exe" in table


def test_content_is_read_from_the_standard_input_without_its_final_newline(
    cli_ok: Cli, client: holdfast.Client
) -> None:
    cli_ok("session", "add-message", "chat", "--role", "user", "--content", "-", stdin="one\n\ntwo\n")
    cli_ok("session", "add-message", "chat", "--role", "user", "--parts", "-", stdin='[{"type":"text","text":"three"}]')
    assert [message.text for message in client.session("chat").messages] == ["one\n\ntwo", "three"]


def test_messages_are_read_from_a_file(cli_ok: Cli, tmp_path: Path, client: holdfast.Client) -> None:
    file = tmp_path / "messages.jsonl"
    file.write_text('\ufeff{"role":"user","content":"one"}\n\n{"role":"user","content":"two"}\n', "utf-8")
    cli_ok("session", "add-messages", "chat", f"@{file}")
    assert [message.text for message in client.session("chat").messages] == ["one", "two"]


def test_many_messages_are_added_in_batches_and_printed_as_one_result(cli_ok: Cli, client: holdfast.Client) -> None:
    lines = "".join(json.dumps({"role": "user", "content": f"number {n}"}) + "\n" for n in range(250))
    added = cli_ok("session", "add-messages", "chat", "-", "-o", "json", stdin=lines).json
    assert (added["added"], added["seq"], len(set(added["message_ids"]))) == (250, 250, 250)
    assert [message.text for message in client.session("chat").messages] == [f"number {n}" for n in range(250)]


def test_a_failed_batch_is_reported_and_a_key_makes_the_command_safe_to_repeat(
    cli: Cli, client: holdfast.Client
) -> None:
    messages: list[dict[str, str]] = [{"role": "user", "content": f"number {n}"} for n in range(250)]
    broken = [*messages[:220], {"role": "robot", "content": "?"}, *messages[221:]]
    add = ("session", "add-messages", "chat", "-", "--idempotency-key", "k", "--expected-seq", "0")
    failed = cli(*add, stdin=json.dumps(broken))
    assert failed.code == 1
    assert failed.err.splitlines()[0] == "200 of 250 messages were added; to continue, repeat the command."
    assert "robot" in failed.err.splitlines()[1]
    assert client.get_session("chat").message_count == 200
    assert cli(*add, stdin=json.dumps(messages)).code == 0
    assert [message.text for message in client.session("chat").messages] == [f"number {n}" for n in range(250)]


def test_a_repeated_key_adds_a_message_only_once(cli_ok: Cli, cli: Cli) -> None:
    add = ("session", "add-message", "chat", "--role", "user", "--content", "hello", "-o", "json")
    first = cli_ok(*add, "--idempotency-key", "k").json
    assert cli_ok(*add, "--idempotency-key", "k").json == first
    refused = cli(*add, "--expected-seq", "7")
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert cli_ok(*add, "--expected-seq", "1").json["seq"] == 2


def test_a_fork_shares_messages_up_to_a_seq_or_a_message_id(cli_ok: Cli) -> None:
    ids = cli_ok(
        "session", "add-messages", "chat", "-", "-o", "json", stdin='{"role":"user","content":"1"}\n' * 3
    ).json["message_ids"]
    by_seq = cli_ok("session", "fork", "chat", "--at", "2", "--new-id", "a", "--title", "What if", "-o", "json").json
    by_id = cli_ok("session", "fork", "chat", "--at", ids[0], "-o", "json").json
    assert (by_seq["session_id"], by_seq["title"], by_seq["forked_from"]["seq"]) == ("a", "What if", 2)
    assert (by_id["total_message_count"], by_id["forked_from"]["seq"]) == (1, 1)
    assert cli_ok("session", "fork", "chat", "-o", "json").json["total_message_count"] == 3


def test_an_export_can_be_imported(cli_ok: Cli, account: str, tmp_path: Path, run_cli: Cli) -> None:
    cli_ok("session", "add-messages", "chat", '[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]')
    cli_ok("session", "new", "--id", "other")
    exported = cli_ok("export", str(tmp_path / "all"))
    assert "2 messages were written" in exported.err
    report = cli_ok("session", "export", "chat", str(tmp_path / "one"), "-o", "json").json
    assert [(row["session_id"], row["messages"]) for row in report["sessions"]] == [("chat", 2)]
    assert [
        row["session_id"] for row in cli_ok("export", str(tmp_path / "some"), "--session", "other", "-o", "jsonl").jsonl
    ] == ["other"]

    other_target = ("--path", str(tmp_path / "other"), "--account", account)
    dry_run = run_cli(*other_target, "import", str(tmp_path / "all"), "--dry-run")
    assert (dry_run.code, "would be added" in dry_run.err) == (0, True)
    assert run_cli(*other_target, "session", "list", "-o", "json").json == []
    assert run_cli(*other_target, "import", str(tmp_path / "all")).code == 0
    again = run_cli(*other_target, "import", str(tmp_path / "all"), "-o", "jsonl").jsonl
    assert {row["state"] for row in again} == {"already there"}
    expected = cli_ok("session", "messages", "chat", "-o", "json").json
    assert run_cli(*other_target, "session", "messages", "chat", "-o", "json").json == expected


def test_an_export_prints_the_other_mounts_that_it_exported(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def artifacts_folder(_tx: Tx, _principal: Principal, uri: str) -> Folder:
        return small_folder("artifacts", uri, 0, lambda: iter([text_file(uri, "report.md", 0, "done")]))

    monkeypatch.setattr(mounts, "MOUNTS", (*mounts.MOUNTS, Mount("artifacts", artifacts_folder)))
    target = ("--path", str(tmp_path / "data"))
    run_cli(*target, "session", "new", "--id", "chat")
    exported = run_cli(*target, "export", str(tmp_path / "all"))
    assert exported.err.splitlines()[-1] == "Also exported: viking://artifacts."
    exported = run_cli(*target, "export", str(tmp_path / "some"), "--session", "chat")
    assert "Also exported" not in exported.err


def test_a_chat_is_imported_from_the_standard_input(cli_ok: Cli) -> None:
    chat = '{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]}\n'
    cli_ok("import", "-", "--format", "openai", "--session-id", "chat", stdin=chat)
    assert [row["role"] for row in cli_ok("session", "messages", "chat", "-o", "jsonl").jsonl] == ["user", "assistant"]


def test_accounts_are_created_and_deleted_and_their_keys_are_shown_once(cli_ok: Cli, account: str) -> None:
    tenant = f"{account}-tenant"
    created = cli_ok("admin", "account", "create", tenant, "--admin", "ann")
    assert "hf." in created.out
    assert "cannot be shown again" in created.err
    listed = cli_ok("admin", "account", "list", "-o", "json").json
    assert tenant in [row["account_id"] for row in listed]
    cli_ok("admin", "account", "delete", tenant)
    assert tenant not in cli_ok("admin", "account", "list").out


def test_users_are_created_changed_and_deleted(cli_ok: Cli, account: str) -> None:
    cli_ok("session", "new")  # creates the account
    created = cli_ok("admin", "user", "create", account, "bob", "-o", "json")
    assert (created.json["role"], created.json["user_key"][:3], created.err) == ("user", "hf.", "")
    assert cli_ok("admin", "user", "set-role", account, "bob", "admin", "-o", "json").json["role"] == "admin"
    assert [row["role"] for row in cli_ok("admin", "user", "list", account, "-o", "json").json] == ["admin"]
    cli_ok("admin", "user", "delete", account, "bob", "--yes")
    assert cli_ok("admin", "user", "list", account, "-o", "json").json == []


def test_keys_are_created_rotated_listed_and_revoked(cli_ok: Cli, account: str) -> None:
    cli_ok("session", "new")
    cli_ok("admin", "user", "create", account, "bob")
    more = cli_ok("admin", "key", "create", account, "bob", "--expires-in", "90d", "-o", "json").json
    assert more["expires_at"] is not None
    assert len(cli_ok("admin", "key", "list", account, "bob", "-o", "json").json) == 2
    only = cli_ok("admin", "key", "rotate", account, "bob", "-o", "json").json["key_id"]
    assert [row["key_id"] for row in cli_ok("admin", "key", "list", account, "bob", "-o", "json").json] == [only]
    cli_ok("admin", "key", "revoke", account, "bob", only)
    assert cli_ok("admin", "key", "list", account, "bob", "-o", "json").json == []


def test_the_audit_continues_at_a_cursor(cli_ok: Cli) -> None:
    for number in range(3):
        cli_ok("session", "new", "--id", f"chat_{number}")
    page = cli_ok("audit", "list", "--limit", "2", "-o", "json")
    assert [record["resource"] for record in page.json["records"]] == ["chat_2", "chat_1"]
    assert page.json["next_cursor"] in page.err
    rest = cli_ok("audit", "list", "--cursor", page.json["next_cursor"], "-o", "jsonl").jsonl
    assert rest[0]["resource"] == "chat_0"


def test_status_shows_the_target_and_the_caller(cli_ok: Cli, cli_target: Any, account: str) -> None:
    status = cli_ok("status", "--user", "ann", "-o", "json").json
    assert status["where"].startswith(cli_target.value)
    assert (status["account_id"], status["user_id"], status["role"]) == (account, "ann", "root")
    assert status["is_healthy"]
    assert "storage" in status["components"]
    assert "storage" in cli_ok("status").out


def test_doctor_reports_ok_for_a_healthy_target(cli_ok: Cli, cli_target: Any) -> None:
    cli_ok("session", "new", "--id", "chat")
    findings = {finding["name"]: finding["state"] for finding in cli_ok("doctor", "-o", "json").json}
    assert set(findings.values()) == {"ok"}
    embedded = {"computing", "database", "schema", "writing", "integrity", "space", "sqlite"}
    assert findings.keys() >= (embedded if cli_target.option == "--path" else {"server", "identity", "storage"})
    assert findings.keys() >= {"python", "clock", "settings", "[server]", "[postgres]"}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "in a server and a worker, summaries are computed in a child process, with at most 60 s of CPU time"),
        (
            {"COMPUTE": "process", "COMPUTE_MEMORY_MB": "300"},
            "in a child process, with at most 60 s of CPU time and 300 MB",
        ),
        ({"COMPUTE": "thread"}, "summaries are computed in threads of the program, without limits"),
    ],
    ids=["default", "process", "thread"],
)
def test_doctor_states_where_summaries_are_computed(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], text: str
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"HOLDFAST_{name}", value)
    findings = run_cli("--path", str(tmp_path), "doctor", "-o", "json").json
    (computing,) = [finding for finding in findings if finding["name"] == "computing"]
    assert text in computing["said"]


def test_a_missing_resource_exits_with_3(cli: Cli, account: str) -> None:
    for args in (
        ("session", "get", "nobody"),
        ("session", "messages", "nobody"),
        ("session", "delete", "nobody"),
        ("session", "fork", "nobody"),
        ("admin", "user", "delete", account, "nobody"),
        ("admin", "key", "list", account, "nobody"),
        ("admin", "account", "delete", "nobody"),
    ):
        done = cli(*args)
        assert (done.code, done.out) == (3, ""), args
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1


def test_a_rejected_operation_exits_with_1(cli: Cli, cli_ok: Cli, account: str) -> None:
    cli_ok("session", "new", "--id", "chat")
    for args in (
        ("session", "new", "--id", "chat"),
        ("session", "new", "--id", "../x"),
        ("session", "list", "--limit", "0"),
        ("session", "add-messages", "chat", "[]"),
        ("session", "add-message", "chat", "--role", "user", "--parts", '[{"type":"hologram"}]'),
        ("admin", "user", "create", account, "bob", "--expires-in", "0"),
        ("admin", "account", "delete", account),
    ):
        done = cli(*args)
        assert (done.code, done.out) == (1, ""), args
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1
