"""The contract of the `viking://` tree."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast.errors import (
    FailedPreconditionError,
    HoldfastError,
    InvalidArgumentError,
    InvalidUriError,
    NotFoundError,
    PermissionDeniedError,
)
from holdfast.model.parts import ToolPart

SESSION_URI = "viking://session/chat_001"
CANONICAL_URI = "viking://user/alice/sessions/chat_001"
REQUEST = "Please deploy the billing service to staging, never to production."


def commit_and_wait(client: Any, session_id: str = "chat_001", text: str = REQUEST) -> str:
    """Add and commit a message, wait for its summary, and return the URI of the archive."""
    client.add_message(session_id, "user", text)
    commit = client.commit_session(session_id)
    assert client.wait_for_task(commit.task_id).status == "completed"
    return str(commit.archive_uri)


def entry_names(client: Any, uri: str) -> list[str]:
    return [entry.name for entry in client.ls(uri, show_all_hidden=True)]


class FileContract:
    def test_a_session_has_its_files_before_any_commit(self, client: Any) -> None:
        client.add_message("chat_001", "user", REQUEST)
        assert entry_names(client, SESSION_URI) == [".meta.json", ".relations.json", "messages.jsonl"]

    def test_a_finished_commit_adds_summaries_and_an_archive(self, client: Any) -> None:
        archive = commit_and_wait(client)
        assert [entry.name for entry in client.ls(SESSION_URI)] == ["messages.jsonl", "history"]
        assert entry_names(client, SESSION_URI)[:2] == [".abstract.md", ".overview.md"]
        assert set(entry_names(client, archive)) == {
            "messages.jsonl",
            ".meta.json",
            ".abstract.md",
            ".overview.md",
            "memory_diff.json",
            ".done",
        }

    def test_an_archive_has_its_own_summary_and_a_session_has_the_summary_of_all_archives(self, client: Any) -> None:
        first = commit_and_wait(client)
        second = commit_and_wait(client, text="Now send the invoice of 1,250 euros to Ms Larsen.")
        for uri, name in ((first, "archive_001"), (second, "archive_002")):
            archive = client.get_session_archive("chat_001", name)
            assert client.abstract(uri) == client.read(f"{uri}/.abstract.md") == archive.abstract
            assert client.overview(uri) == client.read(f"{uri}/.overview.md") == archive.overview
        assert client.abstract(SESSION_URI).startswith(client.abstract(second))
        assert "billing" in client.abstract(SESSION_URI)  # from the first archive
        assert client.overview(SESSION_URI) == client.get_session_context("chat_001").latest_archive_overview
        assert client.session("chat_001").summary == client.overview(SESSION_URI)

    def test_without_a_finished_archive_a_session_has_no_summary_of_its_own(self, client: Any) -> None:
        client.add_message("chat_001", "user", REQUEST)
        assert client.session("chat_001").summary == client.session("nobodys").summary == ""
        for call in (client.abstract, client.overview):
            assert call(SESSION_URI) == "chat_001 has messages.jsonl."
        with pytest.raises(NotFoundError) as raised:
            client.read(f"{SESSION_URI}/.overview.md")
        assert raised.value.details == {"type": "file", "resource": f"{SESSION_URI}/.overview.md"}

    def test_messages_jsonl_has_a_line_per_message_and_can_be_read_by_line(self, client: Any) -> None:
        for number in range(5):
            client.add_message("chat_001", "user", f"number {number}, in two\u2028lines, they say")
        messages = client.get_messages("chat_001").messages
        *lines, end = client.read(f"{SESSION_URI}/messages.jsonl").split("\n")
        assert end == ""
        assert [msgspec.json.decode(line, type=type(messages[0])) for line in lines] == messages
        assert client.read(f"{SESSION_URI}/messages.jsonl", 1, 2) == f"{lines[1]}\n{lines[2]}\n"
        assert client.read(f"{SESSION_URI}/messages.jsonl", 4, 10).count("number 4") == 1
        assert (
            client.read(f"{SESSION_URI}/messages.jsonl", 5) == client.read(f"{SESSION_URI}/messages.jsonl", 0, 0) == ""
        )

    def test_live_and_sealed_messages_are_in_different_files(self, client: Any) -> None:
        archive = commit_and_wait(client)
        client.add_message("chat_001", "user", "and now?")
        assert REQUEST in client.read(f"{archive}/messages.jsonl")
        live = client.read(f"{SESSION_URI}/messages.jsonl")
        assert (live.count("\n"), "and now?" in live) == (1, True)

    def test_other_files_can_be_read_by_line(self, client: Any) -> None:
        client.create_session("chat_001", title="two\u2028lines, they say")
        lines = client.read(f"{SESSION_URI}/.meta.json").split("\n")
        assert len(lines) > 5
        for number, line in enumerate(lines[:-1]):
            assert client.read(f"{SESSION_URI}/.meta.json", number, 1) == f"{line}\n"
        assert client.read(f"{SESSION_URI}/.meta.json", 2, 3) == "\n".join([*lines[2:5], ""])

    def test_meta_json_describes_a_session_and_an_archive(self, client: Any) -> None:
        client.create_session("chat_001", title="Billing", metadata={"team": "north"})
        archive = commit_and_wait(client)
        session = msgspec.json.decode(client.read(f"{SESSION_URI}/.meta.json"))
        assert (session["title"], session["metadata"], session["message_count"]) == ("Billing", {"team": "north"}, 1)
        (listed,) = client.list_archives("chat_001")
        assert msgspec.json.decode(client.read(f"{archive}/.meta.json")) == listed.to_dict()

    def test_a_commit_without_memory_changes_has_an_empty_memory_diff(self, client: Any) -> None:
        archive = commit_and_wait(client)
        ended_at = client.list_archives("chat_001")[0]["ended_at"]
        assert msgspec.json.decode(client.read(f"{archive}/memory_diff.json")) == {
            "archive_uri": archive,
            "extracted_at": ended_at,
            "operations": {"adds": [], "updates": [], "deletes": []},
            "summary": {"total_adds": 0, "total_updates": 0, "total_deletes": 0},
        }
        assert msgspec.json.decode(client.read(f"{archive}/.done")) == {"done_at": ended_at}

    def test_relations_json_lists_used_contexts_and_skills(self, client: Any) -> None:
        client.session_used("chat_001", contexts=["viking://resources/a.md"], skill={"uri": "viking://s", "input": 1})
        uses = msgspec.json.decode(client.read(f"{SESSION_URI}/.relations.json"))["uses"]
        assert [(use["kind"], use["uri"]) for use in uses] == [
            ("context", "viking://resources/a.md"),
            ("skill", "viking://s"),
        ]

    @pytest.mark.parametrize("tool_id", ["call_Ab1", "a/b c", "..", "Füße%2F"])
    def test_the_calls_of_a_tool_id_are_in_a_folder_of_that_name(self, client: Any, tool_id: str) -> None:
        call = ToolPart(tool_id=tool_id, tool_name="search", input={"q": "fjord"}, status="running")
        other = ToolPart(tool_id="other", tool_name="other")
        client.add_message("chat_001", "assistant", parts=[other, call])
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_id=tool_id, output="Oslo", status="completed")])
        (uri,) = [
            entry.uri for entry in client.ls(f"{SESSION_URI}/tools", show_all_hidden=True) if entry.name == tool_id
        ]
        assert entry_names(client, uri) == ["tool.json"]
        file = msgspec.json.decode(client.read(f"{uri}/tool.json"))
        assert file["tool_id"] == tool_id
        calls = [(call["seq"], call["part"], call["tool_status"]) for call in file["calls"]]
        assert calls == [(1, 1, "running"), (2, 0, "completed")]
        assert (file["calls"][0]["tool_input"], file["calls"][1]["tool_output"]) == ({"q": "fjord"}, "Oslo")

    @pytest.mark.parametrize("tool_id", ["call_1", "", "~", "é" * 1_000])
    def test_a_whole_tool_output_is_a_file_in_the_folder_of_its_tool(self, client: Any, tool_id: str) -> None:
        output = "Zeile: 完了\r\n" * 2_000 + "the end"
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_id=tool_id, output=output)])
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_id="other", output=f"{output}.")])
        (result,) = [row for row in client.list_tool_results("chat_001").tool_results if row.seq == 1]
        entries = client.ls(f"{SESSION_URI}/tools", recursive=True)
        (file,) = [entry for entry in entries if entry.name == f"{result.tool_result_id}.txt"]
        assert (file.size, file.is_dir) == (len(output.encode()), False)
        assert client.stat(file.uri) == msgspec.structs.replace(file, rel_path=file.name)
        assert client.read(file.uri) == output
        assert client.read(file.uri, 1_999, 2) == "Zeile: 完了\r\nthe end"
        calls = [client.read(entry.uri) for entry in entries if entry.name == "tool.json"]
        assert any(f'"output_file":"{file.name}"' in call for call in calls) == (tool_id != "")

    def test_a_read_can_be_limited_in_characters(self, client: Any) -> None:
        for number in range(3):
            client.add_message("chat_001", "user", f"number {number}: {'é' * 100}")
        client.session_used("chat_001", contexts=["viking://resources/a.md", "viking://resources/b.md"])
        for name in ("messages.jsonl", ".meta.json", ".relations.json"):
            uri = f"{SESSION_URI}/{name}"
            whole = client.read(uri)
            parts = [client.read(uri, char_offset=at, char_limit=70) for at in range(0, len(whole) + 70, 70)]
            assert ("".join(parts), parts[-1]) == (whole, "")
            lines = whole.split("\n")
            assert client.read(uri, 1, 1, char_offset=2, char_limit=3) == f"{lines[1]}\n"[2:5]
            assert client.read(uri, 1, 1, char_offset=len(lines[1]) + 1, char_limit=3) == ""
            for offset in range(len(lines) + 2):
                rest = "".join(f"{line}\n" for line in lines[offset:-1])
                assert client.read(uri, offset) == rest

    def test_a_fork_has_the_archives_and_tool_files_of_its_parent(self, client: Any) -> None:
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_id="c1", output="x", status="completed")])
        archive = commit_and_wait(client)
        client.fork_session("chat_001", new_session_id="what-if")
        forked = "viking://user/alice/sessions/what-if"
        shared = client.read(f"{forked}/history/archive_001/messages.jsonl")
        assert shared == client.read(f"{archive}/messages.jsonl")
        assert client.read(f"{forked}/tools/c1/tool.json") == client.read(f"{SESSION_URI}/tools/c1/tool.json")
        assert client.overview(forked) == client.overview(SESSION_URI)

    def test_the_parent_folders_contain_only_the_sessions_of_the_caller(
        self, client: Any, connect_as: Callable[..., Any]
    ) -> None:
        client.create_session("chat_001")
        client.create_session("chat_002")
        bob = connect_as("acme", "bob")
        bob.create_session("bobs")
        assert [entry.name for entry in client.ls("viking://")] == ["agent", "resources", "system", "user"]
        assert [entry.uri for entry in client.ls("viking://user/")] == ["viking://user/alice"]
        assert [entry.name for entry in client.ls("viking://user/alice")] == ["resources", "sessions", "skills"]
        for uri in ("viking://user/alice/sessions", "viking://session"):
            assert [entry.name for entry in client.ls(uri)] == ["chat_002", "chat_001"]
        assert [entry.uri for entry in bob.ls("viking://session")] == ["viking://user/bob/sessions/bobs"]

    def test_a_listing_uses_the_canonical_uri_of_the_session(self, client: Any) -> None:
        client.add_message("chat_001", "user", REQUEST)
        (listed,) = client.ls(SESSION_URI)
        assert listed["uri"] == f"{CANONICAL_URI}/messages.jsonl"
        assert (listed["isDir"], listed["name"], listed["rel_path"]) == (False, "messages.jsonl", "messages.jsonl")
        assert client.stat(SESSION_URI).uri == client.get_session("chat_001").uri == CANONICAL_URI
        assert client.stat(CANONICAL_URI)["modTime"] == client.get_session("chat_001")["updated_at"]
        assert client.ls(SESSION_URI, simple=True) == [f"{CANONICAL_URI}/messages.jsonl"]

    def test_only_a_listing_for_agents_includes_the_abstracts_of_folders(self, client: Any) -> None:
        archive = commit_and_wait(client)
        (for_agents,) = client.ls("viking://session", output="agent")
        assert for_agents["abstract"] == client.abstract(archive)
        (original,) = client.ls("viking://session", output="original")
        assert (original.abstract, "abstract" in original.to_dict()) == (None, False)
        (shortened,) = client.ls("viking://session", output="agent", abs_limit=5)
        assert shortened.abstract == for_agents.abstract[:5]

    def test_a_size_is_in_bytes_if_it_is_known_without_reading_and_otherwise_zero(self, client: Any) -> None:
        archive = commit_and_wait(client, text="Grüße nach Tromsø, bitte!")
        assert client.stat(f"{archive}/.overview.md").size == len(client.overview(archive).encode())
        assert client.stat(f"{archive}/messages.jsonl").size == 0

    def test_the_depth_of_a_listing_can_be_chosen(self, client: Any) -> None:
        commit_and_wait(client)
        sessions = "viking://user/alice/sessions"
        flat = client.ls(sessions, simple=True)
        two = client.tree(sessions, simple=True, level_limit=2)
        deep = client.ls(sessions, simple=True, recursive=True)
        assert flat == deep[:1]
        assert two == deep[: len(two)]
        assert f"{CANONICAL_URI}/history" == two[-1]
        assert deep[-1] == f"{CANONICAL_URI}/history/archive_001/memory_diff.json"
        assert [entry.rel_path for entry in client.tree(SESSION_URI)][-1] == "history/archive_001/memory_diff.json"

    def test_a_listing_can_be_read_in_pages(self, client: Any) -> None:
        for number in range(7):
            client.create_session(f"chat_{number:03d}")
        whole = client.ls("viking://session", simple=True)
        assert (len(whole), whole.has_more) == (7, False)
        first = client.ls("viking://session", simple=True, limit=3)
        rest = client.ls("viking://session", simple=True, offset=3, node_limit=4)
        assert (first + rest, first.has_more, rest.has_more) == (whole, True, False)
        assert client.tree("viking://session", simple=True, node_limit=2).has_more

    @pytest.mark.parametrize(
        "uri",
        [
            "viking://session/nobodys",
            "viking://user/alice/sessions/nobodys/messages.jsonl",
            "viking://user/alice/memories",
            "viking://user/nobody",
            "viking://agent/nobody",
            "viking://resources/docs",
            "viking://system/nothing",
            f"{SESSION_URI}/nothing.txt",
            f"{SESSION_URI}/messages.jsonl/deeper",
            f"{SESSION_URI}/history/archive_009",
            f"{SESSION_URI}/history/archive_1",
            f"{SESSION_URI}/tools/none/tool.json",
        ],
    )
    def test_a_missing_file_is_not_found(self, client: Any, uri: str) -> None:
        commit_and_wait(client)
        for call in (client.ls, client.tree, client.stat, client.read, client.abstract, client.overview):
            with pytest.raises(NotFoundError) as raised:
                call(uri)
            assert raised.value.details == {"type": "file", "resource": uri}

    def test_files_of_other_users_give_the_same_error_as_missing_files(
        self, client: Any, connect_as: Callable[..., Any]
    ) -> None:
        commit_and_wait(client)
        for other_user in (connect_as("acme", "bob"), connect_as("rival", "carol")):
            for call in (
                other_user.ls,
                other_user.tree,
                other_user.stat,
                other_user.read,
                other_user.abstract,
                other_user.overview,
            ):
                errors = []
                for uri in (CANONICAL_URI, CANONICAL_URI.replace("alice", "nobody"), SESSION_URI):
                    with pytest.raises(HoldfastError) as raised:
                        call(uri)
                    errors.append((raised.value.code, raised.value.message.replace(uri, "URI")))
                assert errors == [("NOT_FOUND", "File URI not found")] * 3

    @pytest.mark.parametrize(
        "uri",
        [
            "/etc/passwd",
            "http://session/chat_001",
            "viking:/session",
            "viking://elsewhere/x",
            "viking://temp",
            "viking://queue/x",
            "viking://user//sessions",
            "viking://user/.",
            "viking://user/%ff",
        ],
    )
    def test_an_invalid_uri_is_rejected_with_the_reason(self, client: Any, uri: str) -> None:
        for call in (client.ls, client.tree, client.stat, client.read, client.abstract, client.overview):
            with pytest.raises(InvalidUriError) as raised:
                call(uri)
            assert raised.value.code == "INVALID_URI"
            assert raised.value.details["uri"] == uri
            assert raised.value.details["reason"]

    def test_a_path_that_leads_upwards_is_denied(self, client: Any) -> None:
        for call in (client.ls, client.stat, client.read, client.overview):
            with pytest.raises(PermissionDeniedError, match=r"`\.\.`"):
                call("viking://user/../sessions")

    def test_a_folder_cannot_be_read_and_a_file_cannot_be_listed(self, client: Any) -> None:
        client.add_message("chat_001", "user", REQUEST)
        with pytest.raises(FailedPreconditionError, match="is a folder"):
            client.read(SESSION_URI)
        for call in (client.ls, client.tree):
            with pytest.raises(FailedPreconditionError, match="is a file"):
                call(f"{SESSION_URI}/messages.jsonl")

    @pytest.mark.parametrize(
        "bounds", [{"node_limit": 0}, {"node_limit": 10_001}, {"offset": -1}, {"limit": 0}, {"abs_limit": -1}]
    )
    def test_a_parameter_out_of_range_is_rejected_with_its_name(self, client: Any, bounds: dict[str, int]) -> None:
        for call in (client.ls, client.tree):
            with pytest.raises(InvalidArgumentError) as raised:
                call("viking://", **bounds)
            assert raised.value.details["field"] == next(iter(bounds))
        with pytest.raises(InvalidArgumentError):
            client.read(f"{SESSION_URI}/messages.jsonl", 0, -2)
        for field, value in (("char_offset", -1), ("char_limit", 0), ("char_limit", 10_000_001)):
            with pytest.raises(InvalidArgumentError) as raised:
                client.read(f"{SESSION_URI}/messages.jsonl", **{field: value})
            assert raised.value.details["field"] == field
