"""What a client must do with the `viking://` tree."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast.errors import FailedPreconditionError, HoldfastError, InvalidArgumentError, InvalidUriError, NotFoundError
from holdfast.model.parts import ToolPart

HERE = "viking://session/chat_001"
CANONICAL = "viking://user/alice/sessions/chat_001"
ASKED = "Please deploy the billing service to staging, never to production."


def committed(client: Any, session_id: str = "chat_001", text: str = ASKED) -> str:
    """Commit a message and wait until it is summarised; the archive's URI."""
    client.add_message(session_id, "user", text)
    done = client.commit_session(session_id)
    assert client.wait_for_task(done.task_id).status == "completed"
    return str(done.archive_uri)


def names(client: Any, uri: str) -> list[str]:
    return [entry.name for entry in client.ls(uri, show_all_hidden=True)]


class FileContract:
    def test_a_session_has_its_files_before_any_commit(self, client: Any) -> None:
        client.add_message("chat_001", "user", ASKED)
        assert names(client, HERE) == [".meta.json", ".relations.json", "messages.jsonl"]

    def test_a_commit_that_is_done_adds_summaries_and_an_archive(self, client: Any) -> None:
        archive = committed(client)
        assert [entry.name for entry in client.ls(HERE)] == ["messages.jsonl", "history"]
        assert names(client, HERE)[:2] == [".abstract.md", ".overview.md"]
        assert set(names(client, archive)) == {
            "messages.jsonl",
            ".meta.json",
            ".abstract.md",
            ".overview.md",
            "memory_diff.json",
            ".done",
        }

    def test_the_summaries_of_an_archive_are_its_own_and_those_of_a_session_are_the_latest(self, client: Any) -> None:
        first = committed(client)
        second = committed(client, text="Now send the invoice of 1,250 euros to Ms Larsen.")
        for uri, name in ((first, "archive_001"), (second, "archive_002")):
            archive = client.get_session_archive("chat_001", name)
            assert client.abstract(uri) == client.read(f"{uri}/.abstract.md") == archive.abstract
            assert client.overview(uri) == client.read(f"{uri}/.overview.md") == archive.overview
        assert client.abstract(HERE).startswith(client.abstract(second))
        assert "billing" in client.abstract(HERE)
        assert client.overview(HERE) == client.get_session_context("chat_001").latest_archive_overview
        assert client.session("chat_001").summary == client.overview(HERE)

    def test_without_a_finished_archive_there_is_no_summary(self, client: Any) -> None:
        client.add_message("chat_001", "user", ASKED)
        assert client.session("chat_001").summary == client.session("nobodys").summary == ""
        for ask in (client.abstract, client.overview):
            with pytest.raises(NotFoundError) as refused:
                ask(HERE)
            assert refused.value.details == {"type": "file", "resource": HERE}

    def test_the_messages_are_lines_and_can_be_read_by_number(self, client: Any) -> None:
        for number in range(5):
            client.add_message("chat_001", "user", f"number {number}, in two\u2028lines, they say")
        said = client.get_messages("chat_001").messages
        whole = client.read(f"{HERE}/messages.jsonl")
        assert [msgspec.json.decode(line, type=type(said[0])) for line in whole.split("\n")[:-1]] == said
        assert client.read(f"{HERE}/messages.jsonl", 1, 2) == "".join(whole.splitlines(keepends=True)[2:6])
        assert client.read(f"{HERE}/messages.jsonl", 4, 10).count("number 4") == 1
        assert client.read(f"{HERE}/messages.jsonl", 5) == client.read(f"{HERE}/messages.jsonl", 0, 0) == ""

    def test_the_live_messages_are_in_one_file_and_the_sealed_ones_in_another(self, client: Any) -> None:
        archive = committed(client)
        client.add_message("chat_001", "user", "and now?")
        assert ASKED in client.read(f"{archive}/messages.jsonl")
        live = client.read(f"{HERE}/messages.jsonl")
        assert (live.count("\n"), "and now?" in live) == (1, True)

    def test_a_file_other_than_messages_is_read_by_lines_too(self, client: Any) -> None:
        client.create_session("chat_001", title="two\u2028lines, they say")
        lines = client.read(f"{HERE}/.meta.json").split("\n")
        assert len(lines) > 5
        for number, line in enumerate(lines[:-1]):
            assert client.read(f"{HERE}/.meta.json", number, 1) == f"{line}\n"
        assert client.read(f"{HERE}/.meta.json", 2, 3) == "\n".join([*lines[2:5], ""])

    def test_what_is_known_of_a_session_and_an_archive_is_json(self, client: Any) -> None:
        client.create_session("chat_001", title="Billing", metadata={"team": "north"})
        archive = committed(client)
        session = msgspec.json.decode(client.read(f"{HERE}/.meta.json"))
        assert (session["title"], session["metadata"], session["message_count"]) == ("Billing", {"team": "north"}, 1)
        (listed,) = client.list_archives("chat_001")
        assert msgspec.json.decode(client.read(f"{archive}/.meta.json")) == listed.to_dict()

    def test_a_commit_that_changed_no_memory_leaves_an_empty_difference(self, client: Any) -> None:
        archive = committed(client)
        ended_at = client.list_archives("chat_001")[0]["ended_at"]
        assert msgspec.json.decode(client.read(f"{archive}/memory_diff.json")) == {
            "archive_uri": archive,
            "extracted_at": ended_at,
            "operations": {"adds": [], "updates": [], "deletes": []},
            "summary": {"total_adds": 0, "total_updates": 0, "total_deletes": 0},
        }
        assert msgspec.json.decode(client.read(f"{archive}/.done")) == {"done_at": ended_at}

    def test_what_was_used_is_in_the_relations(self, client: Any) -> None:
        client.session_used("chat_001", contexts=["viking://resources/a.md"], skill={"uri": "viking://s", "input": 1})
        uses = msgspec.json.decode(client.read(f"{HERE}/.relations.json"))["uses"]
        assert [(use["kind"], use["uri"]) for use in uses] == [
            ("context", "viking://resources/a.md"),
            ("skill", "viking://s"),
        ]

    @pytest.mark.parametrize("tool_id", ["call_Ab1", "a/b c", "..", "Füße%2F"])
    def test_a_tool_has_its_calls_in_a_folder_of_its_name(self, client: Any, tool_id: str) -> None:
        made = ToolPart(tool_id=tool_id, tool_name="search", input={"q": "fjord"}, status="running")
        other = ToolPart(tool_id="other", tool_name="other")
        client.add_message("chat_001", "assistant", parts=[other, made])
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_id=tool_id, output="Oslo", status="completed")])
        (uri,) = [entry.uri for entry in client.ls(f"{HERE}/tools", show_all_hidden=True) if entry.name == tool_id]
        assert names(client, uri) == ["tool.json"]
        file = msgspec.json.decode(client.read(f"{uri}/tool.json"))
        assert file["tool_id"] == tool_id
        told = [(call["seq"], call["part"], call["tool_status"]) for call in file["calls"]]
        assert told == [(1, 1, "running"), (2, 0, "completed")]
        assert (file["calls"][0]["tool_input"], file["calls"][1]["tool_output"]) == ({"q": "fjord"}, "Oslo")

    def test_a_fork_has_the_archives_and_the_tools_it_shares(self, client: Any) -> None:
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_id="c1", output="x", status="completed")])
        archive = committed(client)
        client.fork_session("chat_001", new_session_id="what-if")
        forked = "viking://user/alice/sessions/what-if"
        shared = client.read(f"{forked}/history/archive_001/messages.jsonl")
        assert shared == client.read(f"{archive}/messages.jsonl")
        assert client.read(f"{forked}/tools/c1/tool.json") == client.read(f"{HERE}/tools/c1/tool.json")
        assert client.overview(forked) == client.overview(HERE)

    def test_the_folders_above_lead_to_the_callers_sessions_and_to_nobody_elses(
        self, client: Any, connect_as: Callable[..., Any]
    ) -> None:
        client.create_session("chat_001")
        client.create_session("chat_002")
        bob = connect_as("acme", "bob")
        bob.create_session("bobs")
        assert [entry.uri for entry in client.ls("viking://")] == ["viking://user"]
        assert [entry.uri for entry in client.ls("viking://user/")] == ["viking://user/alice"]
        assert [entry.uri for entry in client.ls("viking://user/alice")] == ["viking://user/alice/sessions"]
        for uri in ("viking://user/alice/sessions", "viking://session"):
            assert [entry.name for entry in client.ls(uri)] == ["chat_002", "chat_001"]
        assert [entry.uri for entry in bob.ls("viking://session")] == ["viking://user/bob/sessions/bobs"]

    def test_a_listing_names_everything_by_the_uri_that_the_session_has(self, client: Any) -> None:
        client.add_message("chat_001", "user", ASKED)
        (listed,) = client.ls(HERE)
        assert listed["uri"] == f"{CANONICAL}/messages.jsonl"
        assert (listed["isDir"], listed["name"], listed["rel_path"]) == (False, "messages.jsonl", "messages.jsonl")
        assert client.stat(HERE).uri == client.get_session("chat_001").uri == CANONICAL
        assert client.stat(CANONICAL)["modTime"] == client.get_session("chat_001")["updated_at"]
        assert client.ls(HERE, simple=True) == [f"{CANONICAL}/messages.jsonl"]

    def test_the_agents_listing_has_the_abstracts_of_folders(self, client: Any) -> None:
        archive = committed(client)
        agents, original = (client.ls("viking://session", output=output)[0] for output in ("agent", "original"))
        assert agents["abstract"] == client.abstract(archive)
        assert (original.abstract, "abstract" in original.to_dict()) == (None, False)
        (short,) = client.ls("viking://session", output="agent", abs_limit=5)
        assert short.abstract == agents.abstract[:5]

    def test_a_size_is_in_bytes_where_it_is_known_without_reading(self, client: Any) -> None:
        archive = committed(client, text="Grüße nach Tromsø, bitte!")
        assert client.stat(f"{archive}/.overview.md").size == len(client.overview(archive).encode())
        assert client.stat(f"{archive}/messages.jsonl").size == 0

    def test_a_listing_goes_as_deep_as_asked(self, client: Any) -> None:
        committed(client)
        flat = client.ls("viking://user", simple=True)
        two = client.tree("viking://user", simple=True, level_limit=2)
        deep = client.ls("viking://user", simple=True, recursive=True)
        assert flat == deep[:1]
        assert two == deep[:2]
        assert deep[-1] == f"{CANONICAL}/history/archive_001/memory_diff.json"
        assert [entry.rel_path for entry in client.tree(HERE)][-1] == "history/archive_001/memory_diff.json"

    def test_a_listing_can_be_had_in_pieces(self, client: Any) -> None:
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
            "viking://resources/docs",
            f"{HERE}/nothing.txt",
            f"{HERE}/messages.jsonl/deeper",
            f"{HERE}/history/archive_009",
            f"{HERE}/history/archive_1",
            f"{HERE}/tools/none/tool.json",
        ],
    )
    def test_what_is_not_there_is_not_found(self, client: Any, uri: str) -> None:
        committed(client)
        for ask in (client.ls, client.tree, client.stat, client.read, client.abstract, client.overview):
            with pytest.raises(NotFoundError) as refused:
                ask(uri)
            assert refused.value.details == {"type": "file", "resource": uri}

    def test_the_files_of_somebody_else_answer_exactly_as_files_that_do_not_exist(
        self, client: Any, connect_as: Callable[..., Any]
    ) -> None:
        committed(client)
        for stranger in (connect_as("acme", "bob"), connect_as("rival", "carol")):
            for ask in (stranger.ls, stranger.tree, stranger.stat, stranger.read, stranger.abstract, stranger.overview):
                told = []
                for place in (CANONICAL, CANONICAL.replace("alice", "nobody"), HERE):
                    with pytest.raises(HoldfastError) as refused:
                        ask(place)
                    told.append((refused.value.code, refused.value.message.replace(place, "PLACE")))
                assert told == [("NOT_FOUND", "File PLACE not found")] * 3

    @pytest.mark.parametrize(
        "uri",
        [
            "/etc/passwd",
            "http://session/chat_001",
            "viking:/session",
            "viking://elsewhere/x",
            "viking://user//sessions",
            "viking://user/../sessions",
            "viking://user/.",
            "viking://user/%ff",
        ],
    )
    def test_a_uri_that_leads_nowhere_is_refused_with_the_reason(self, client: Any, uri: str) -> None:
        for ask in (client.ls, client.tree, client.stat, client.read, client.abstract, client.overview):
            with pytest.raises(InvalidUriError) as refused:
                ask(uri)
            assert refused.value.code == "INVALID_URI"
            assert refused.value.details["uri"] == uri
            assert refused.value.details["reason"]

    def test_a_folder_cannot_be_read_and_a_file_cannot_be_listed(self, client: Any) -> None:
        client.add_message("chat_001", "user", ASKED)
        with pytest.raises(FailedPreconditionError, match="is a folder"):
            client.read(HERE)
        for ask in (client.ls, client.tree):
            with pytest.raises(FailedPreconditionError, match="is a file"):
                ask(f"{HERE}/messages.jsonl")

    @pytest.mark.parametrize(
        "bounds", [{"node_limit": 0}, {"node_limit": 10_001}, {"offset": -1}, {"limit": 0}, {"abs_limit": -1}]
    )
    def test_what_is_out_of_bounds_is_refused_by_name(self, client: Any, bounds: dict[str, int]) -> None:
        for ask in (client.ls, client.tree):
            with pytest.raises(InvalidArgumentError) as refused:
                ask("viking://", **bounds)
            assert refused.value.details["field"] == next(iter(bounds))
        with pytest.raises(InvalidArgumentError):
            client.read(f"{HERE}/messages.jsonl", 0, -2)
