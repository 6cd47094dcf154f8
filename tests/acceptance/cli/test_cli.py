"""Every command, embedded and through a real server. Each test has an account of its own in one shared place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast

Cli = Callable[..., Any]


def test_the_examples_of_the_seed_work_as_they_stand(ok: Cli, client: holdfast.Client) -> None:
    made = ok("session", "new", "-o", "json").json["session_id"]
    ok("session", "add-message", made, "--role", "user", "--content", "How do I authenticate users?")
    pair = '[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]'
    ok("session", "add-messages", made, pair)
    texts = [message.text for message in client.session(made).messages]
    assert texts == ["How do I authenticate users?", "Hello", "Hi"]
    assert ok("session", "get", made, "-o", "json").json["message_count"] == 3
    assert made in ok("session", "list").out
    ok("session", "delete", made)
    assert ok("session", "list", "-o", "json").json == []


def test_a_session_is_made_with_its_id_title_and_metadata(ok: Cli, client: holdfast.Client) -> None:
    done = ok("session", "new", "--id", "chat", "--title", "Login fails", "--metadata", '{"topic":"login"}')
    assert "Login fails" in done.out
    info = client.get_session("chat")
    assert (info.title, info.metadata) == ("Login fails", {"topic": "login"})


def test_json_is_exactly_what_is_on_the_wire(ok: Cli, client: holdfast.Client) -> None:
    ok("session", "new", "--session-id", "chat")
    ok("session", "add-message", "chat", "--role", "user", "--content", "Grüße 😀")
    assert ok("session", "get", "chat", "-o", "json").json == client.get_session("chat").to_dict()
    assert ok("session", "messages", "chat", "-o", "json").json == client.get_messages("chat").to_dict()
    assert ok("session", "list", "-o", "json").json == [row.to_dict() for row in client.list_sessions()]
    assert ok("admin", "audit", "-o", "json").json == client.admin.list_audit().to_dict()


LISTINGS = [
    ("session", "list"),
    ("session", "messages", "chat"),
    ("admin", "account", "list"),
    ("admin", "user", "list", "ACCOUNT"),
    ("admin", "key", "list", "ACCOUNT", "ann"),
    ("admin", "audit"),
    ("doctor",),
]


@pytest.mark.parametrize("command", LISTINGS, ids=" ".join)
def test_every_listing_is_a_table_one_document_or_a_line_for_each(
    command: tuple[str, ...], ok: Cli, account: str
) -> None:
    args = [account if word == "ACCOUNT" else word for word in command]
    ok("session", "add-messages", "chat", '[{"role":"user","content":"a"},{"role":"user","content":"b"}]')
    ok("admin", "user", "create", account, "ann")
    whole = ok(*args, "-o", "json").json
    listed = whole if isinstance(whole, list) else next(v for v in whole.values() if isinstance(v, list))
    each = ok(*args, "-o", "jsonl").jsonl
    assert len(each) == len(listed) >= 1
    assert each[0].keys() == listed[0].keys()
    table = ok(*args).out.splitlines()
    assert len(table) == len(listed) + (command != ("doctor",))
    assert "\x1b" not in "".join(table)


DETAILS = [("session", "get", "chat"), ("status",), ("version",)]


@pytest.mark.parametrize("command", DETAILS, ids=" ".join)
def test_one_thing_is_a_table_a_document_or_a_line(command: tuple[str, ...], ok: Cli) -> None:
    ok("session", "new", "--id", "chat")
    assert ok(*command, "-o", "json").json == ok(*command, "-o", "jsonl").jsonl[0]
    assert ok(*command).out.count("\n") >= 1


def test_an_option_may_stand_before_or_behind_the_command_and_the_last_wins(ok: Cli) -> None:
    assert ok("-o", "json", "session", "list").json == []
    assert ok("session", "list", "-o", "json").json == []
    assert ok("-o", "table", "session", "list", "--output", "json").json == []


def test_a_list_says_when_there_is_more_and_all_lists_it(ok: Cli) -> None:
    for number in range(3):
        ok("session", "new", "--id", f"chat_{number}", "--title", f"number {number}")
    some = ok("session", "list", "--limit", "2", "-o", "jsonl")
    assert [row["session_id"] for row in some.jsonl] == ["chat_2", "chat_1"]
    assert "--all" in some.err
    everything = ok("session", "list", "--all", "-o", "json")
    assert (len(everything.json), everything.err) == (3, "")
    assert [row["session_id"] for row in ok("session", "list", "--q", "number 1", "-o", "json").json] == ["chat_1"]
    assert ok("session", "list", "--state", "archived", "-o", "json").json == []


def test_all_follows_the_pages_to_the_end(ok: Cli, client: holdfast.Client) -> None:
    for number in range(11):
        client.batch_add_messages("long", [{"role": "user", "content": f"{number}-{n}"} for n in range(100)])
    page = ok("session", "messages", "long", "-o", "jsonl")
    assert (len(page.jsonl), "--first 1001" in page.err) == (1_000, True)
    assert [row["seq"] for row in ok("session", "messages", "long", "--all", "-o", "jsonl").jsonl] == [*range(1, 1_101)]
    document = ok("session", "messages", "long", "--all", "-o", "json").json
    assert (len(document["messages"]), document["next_seq"]) == (1_100, None)
    assert ok("session", "messages", "long", "--all").out.count("\n") == 1_101


def test_messages_are_chosen_by_place_and_by_words(ok: Cli) -> None:
    ok("session", "add-messages", "chat", '[{"role":"user","content":"red apple"}]')
    pears = '{"role":"user","content":"green pear"}\n{"role":"user","content":"red pear"}\n'
    ok("session", "add-messages", "chat", "-", stdin=pears)

    def seqs(*args: str) -> list[int]:
        return [row["seq"] for row in ok("session", "messages", "chat", "-o", "jsonl", *args).jsonl]

    assert seqs() == [1, 2, 3]
    assert seqs("--first", "2") == [2, 3]
    assert seqs("--first", "2", "--last", "2") == [2]
    assert seqs("--q", "pear red") == [3]
    assert seqs("--live", "--limit", "1") == [1]


def test_a_table_of_messages_shows_what_is_not_text_in_short(ok: Cli) -> None:
    parts = [
        {"type": "text", "text": "two\nlines"},
        {"type": "tool", "tool_name": "search", "tool_status": "completed", "tool_output": "x"},
        {"type": "context", "uri": "viking://resources/a.md", "context_type": "resource"},
        {"type": "image", "url": "file:///a.png", "description": "the login page"},
    ]
    ok("session", "add-message", "chat", "--role", "assistant", "--parts", json.dumps(parts))
    table = ok("session", "messages", "chat").out
    assert "two lines [search: completed] [resource viking://resources/a.md] [image the login page]" in table


def test_stored_text_cannot_command_a_terminal(ok: Cli) -> None:
    ok("session", "add-message", "chat", "--role", "user", "--content", "-", stdin="\x1b[2J\x07\u202egnp.exe \u009b31m")
    table = ok("session", "messages", "chat").out
    assert not set(table) & set("\x1b\x07\u202e\u009b")
    assert "gnp.exe" in table


def test_text_is_read_from_the_standard_input_less_its_last_newline(ok: Cli, client: holdfast.Client) -> None:
    ok("session", "add-message", "chat", "--role", "user", "--content", "-", stdin="one\n\ntwo\n")
    ok("session", "add-message", "chat", "--role", "user", "--parts", "-", stdin='[{"type":"text","text":"three"}]')
    assert [message.text for message in client.session("chat").messages] == ["one\n\ntwo", "three"]


def test_messages_are_read_from_a_file(ok: Cli, tmp_path: Path, client: holdfast.Client) -> None:
    file = tmp_path / "messages.jsonl"
    file.write_text('\ufeff{"role":"user","content":"one"}\n\n{"role":"user","content":"two"}\n', "utf-8")
    ok("session", "add-messages", "chat", f"@{file}")
    assert [message.text for message in client.session("chat").messages] == ["one", "two"]


def test_many_messages_go_in_hundreds_and_come_back_as_one_result(ok: Cli, client: holdfast.Client) -> None:
    lines = "".join(json.dumps({"role": "user", "content": f"number {n}"}) + "\n" for n in range(250))
    added = ok("session", "add-messages", "chat", "-", "-o", "json", stdin=lines).json
    assert (added["added"], added["seq"], len(set(added["message_ids"]))) == (250, 250, 250)
    assert [message.text for message in client.session("chat").messages] == [f"number {n}" for n in range(250)]


def test_a_failure_midway_says_how_far_it_came_and_a_key_makes_it_safe_to_go_on(
    cli: Cli, client: holdfast.Client
) -> None:
    messages: list[dict[str, str]] = [{"role": "user", "content": f"number {n}"} for n in range(250)]
    broken = [*messages[:220], {"role": "robot", "content": "?"}, *messages[221:]]
    add = ("session", "add-messages", "chat", "-", "--idempotency-key", "k", "--expected-seq", "0")
    failed = cli(*add, stdin=json.dumps(broken))
    assert failed.code == 1
    assert failed.err.splitlines()[0] == "200 of 250 messages were added; to go on, run it again as it is."
    assert "robot" in failed.err.splitlines()[1]
    assert client.get_session("chat").message_count == 200
    assert cli(*add, stdin=json.dumps(messages)).code == 0
    assert [message.text for message in client.session("chat").messages] == [f"number {n}" for n in range(250)]


def test_a_retry_with_its_key_is_not_done_again(ok: Cli, cli: Cli) -> None:
    add = ("session", "add-message", "chat", "--role", "user", "--content", "hello", "-o", "json")
    first = ok(*add, "--idempotency-key", "k").json
    assert ok(*add, "--idempotency-key", "k").json == first
    refused = cli(*add, "--expected-seq", "7")
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert ok(*add, "--expected-seq", "1").json["seq"] == 2


def test_a_fork_begins_at_a_number_or_a_message(ok: Cli) -> None:
    ids = ok("session", "add-messages", "chat", "-", "-o", "json", stdin='{"role":"user","content":"1"}\n' * 3).json[
        "message_ids"
    ]
    by_seq = ok("session", "fork", "chat", "--at", "2", "--new-id", "a", "--title", "What if", "-o", "json").json
    by_id = ok("session", "fork", "chat", "--at", ids[0], "-o", "json").json
    assert (by_seq["session_id"], by_seq["title"], by_seq["forked_from"]["seq"]) == ("a", "What if", 2)
    assert (by_id["total_message_count"], by_id["forked_from"]["seq"]) == (1, 1)
    assert ok("session", "fork", "chat", "-o", "json").json["total_message_count"] == 3


def test_what_is_exported_can_be_imported(ok: Cli, account: str, tmp_path: Path, anywhere: Cli) -> None:
    ok("session", "add-messages", "chat", '[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]')
    ok("session", "new", "--id", "other")
    exported = ok("export", str(tmp_path / "all"))
    assert "2 messages were written" in exported.err
    report = ok("session", "export", "chat", str(tmp_path / "one"), "-o", "json").json
    assert [(row["session_id"], row["messages"]) for row in report["sessions"]] == [("chat", 2)]
    assert [
        row["session_id"] for row in ok("export", str(tmp_path / "some"), "--session", "other", "-o", "jsonl").jsonl
    ] == ["other"]

    there = ("--path", str(tmp_path / "there"), "--account", account)
    tried = anywhere(*there, "import", str(tmp_path / "all"), "--dry-run")
    assert (tried.code, "would be added" in tried.err) == (0, True)
    assert anywhere(*there, "session", "list", "-o", "json").json == []
    assert anywhere(*there, "import", str(tmp_path / "all")).code == 0
    again = anywhere(*there, "import", str(tmp_path / "all"), "-o", "jsonl").jsonl
    assert {row["state"] for row in again} == {"already there"}
    mine = ok("session", "messages", "chat", "-o", "json").json
    assert anywhere(*there, "session", "messages", "chat", "-o", "json").json == mine


def test_a_chat_is_imported_from_the_standard_input(ok: Cli) -> None:
    chat = '{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]}\n'
    ok("import", "-", "--format", "openai", "--session-id", "chat", stdin=chat)
    assert [row["role"] for row in ok("session", "messages", "chat", "-o", "jsonl").jsonl] == ["user", "assistant"]


def test_accounts_come_and_go_and_their_keys_are_shown_once(ok: Cli, account: str) -> None:
    tenant = f"{account}-tenant"
    made = ok("admin", "account", "create", tenant, "--admin", "ann")
    assert "hf." in made.out
    assert "shown only now" in made.err
    listed = ok("admin", "account", "list", "-o", "json").json
    assert tenant in [row["account_id"] for row in listed]
    ok("admin", "account", "delete", tenant)
    assert tenant not in ok("admin", "account", "list").out


def test_users_come_change_and_go(ok: Cli, account: str) -> None:
    ok("session", "new")  # brings the account into being
    made = ok("admin", "user", "create", account, "bob", "-o", "json")
    assert (made.json["role"], made.json["user_key"][:3], made.err) == ("user", "hf.", "")
    assert ok("admin", "user", "set-role", account, "bob", "admin", "-o", "json").json["role"] == "admin"
    assert [row["role"] for row in ok("admin", "user", "list", account, "-o", "json").json] == ["admin"]
    ok("admin", "user", "delete", account, "bob", "--yes")
    assert ok("admin", "user", "list", account, "-o", "json").json == []


def test_keys_are_made_replaced_listed_and_revoked(ok: Cli, account: str) -> None:
    ok("session", "new")
    ok("admin", "user", "create", account, "bob")
    more = ok("admin", "key", "create", account, "bob", "--expires-in", "90d", "-o", "json").json
    assert more["expires_at"] is not None
    assert len(ok("admin", "key", "list", account, "bob", "-o", "json").json) == 2
    only = ok("admin", "key", "rotate", account, "bob", "-o", "json").json["key_id"]
    assert [row["key_id"] for row in ok("admin", "key", "list", account, "bob", "-o", "json").json] == [only]
    ok("admin", "key", "revoke", account, "bob", only)
    assert ok("admin", "key", "list", account, "bob", "-o", "json").json == []


def test_the_audit_goes_on_where_it_ended(ok: Cli) -> None:
    for number in range(3):
        ok("session", "new", "--id", f"chat_{number}")
    page = ok("admin", "audit", "--limit", "2", "-o", "json")
    assert [record["resource"] for record in page.json["records"]] == ["chat_2", "chat_1"]
    assert page.json["next_cursor"] in page.err
    rest = ok("admin", "audit", "--cursor", page.json["next_cursor"], "-o", "jsonl").jsonl
    assert rest[0]["resource"] == "chat_0"


def test_status_says_where_and_who(ok: Cli, place: Any, account: str) -> None:
    status = ok("status", "--user", "ann", "-o", "json").json
    assert status["where"].startswith(place.value)
    assert (status["account_id"], status["user_id"], status["role"]) == (account, "ann", "root")
    assert status["is_healthy"]
    assert "storage" in status["components"]
    assert "storage" in ok("status").out


def test_the_doctor_finds_a_healthy_place_healthy(ok: Cli, place: Any) -> None:
    ok("session", "new", "--id", "chat")
    findings = {finding["name"]: finding["state"] for finding in ok("doctor", "-o", "json").json}
    assert set(findings.values()) == {"ok"}
    embedded = {"database", "schema", "writing", "integrity", "space", "sqlite"}
    assert findings.keys() >= (embedded if place.option == "--path" else {"server", "identity", "storage"})
    assert findings.keys() >= {"python", "clock", "settings", "[server]", "[postgres]"}


def test_what_is_not_there_exits_with_3(cli: Cli, account: str) -> None:
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


def test_what_is_refused_exits_with_1(cli: Cli, ok: Cli, account: str) -> None:
    ok("session", "new", "--id", "chat")
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
