"""Export and import: the layout of an export, and that importing it restores the same sessions, repeatedly."""

import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Client, ContextPart, ImagePart, Settings, TextPart, ToolPart
from holdfast.errors import InvalidArgumentError, NotFoundError
from holdfast.exchange import export_sessions, file_parts, import_path
from holdfast.exchange.exporting import copying
from holdfast.exchange.importing import comparison, creation, sessions
from holdfast.testing.server import running_server

LOG = "\n".join(f"line {number}: ok\r" for number in range(2_000)) + "\nzuletzt: 完了"
POLICY = {"memory_types": ["events"], "self": {"enabled": False}}


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Client]:
    """A client with sessions that use every feature."""
    with holdfast.connect(tmp_path / "source.db") as client:
        fill(client)
        yield client


@pytest.fixture
def destination(target: str) -> Iterator[Client]:
    """A client with an empty database, of each kind."""
    with holdfast.connect(target) as client:
        yield client


def fill(client: Client) -> None:
    client.create_session("trip", title="A trip", metadata={"season": "winter", "n": {"b": 1, "a": 2}, "year": 1})
    client.update_session_config("trip", memory_policy=POLICY, memory_extraction_config={"k": [1]})
    client.add_message("trip", "user", parts=[TextPart("Where?"), ImagePart("file:///a.png", "A fjord")], peer_id="ann")
    call = ToolPart(tool_id="call_1", tool_name="read", tool_input={"z": 1, "a": True})
    client.add_message("trip", "assistant", parts=[call], turn_id="t1", message_kind="step", id="m2")
    client.add_message("trip", "tool", parts=[ToolPart(tool_id="call_1", tool_name="read", output=LOG, success=True)])
    client.session_used(
        "trip", ["viking://resources/a.md", "viking://resources/b.md"], created_at="2020-02-02T02:02:00Z"
    )
    client.session_used("trip", skill={"uri": "viking://skills/s", "input": {"q": 1}, "success": False})
    client.fork_session("trip", 2, new_session_id="trip-by-bus", title="By bus")
    client.update_session("trip-by-bus", metadata={"season": None, "by": "bus"})
    client.update_session_config("trip-by-bus", memory_policy=None, auto_commit_policy={"keep_recent_count": 2})
    client.add_message(
        "trip-by-bus", "user", "And by bus?", source_message_ids=["m2"], created_at="2019-01-01T00:00:00Z"
    )
    client.fork_session("trip-by-bus", 3, new_session_id="Trip-by-bus-2")
    client.add_message("trip", "user", parts=[ContextPart(uri="viking://resources/a.md", abstract="A")])
    client.create_session("old", created_at="2001-02-03T04:05:06.000007Z")
    client.update_session("old", state="archived")


def read_all(client: Client) -> list[dict[str, Any]]:
    """Everything that can be read, in listing order, without times and ids that the server sets itself."""
    return [_read_session(client, row.session_id) for row in client.list_sessions()]


def _read_session(client: Client, session_id: str) -> dict[str, Any]:
    info = client.get_session(session_id).to_dict()
    del info["updated_at"]
    session = client.session(session_id)
    results = client.list_tool_results(session_id).tool_results
    return {
        **info,
        "messages": [message.to_dict() for message in session.messages],
        "uses": [{**usage.to_dict(), "id": ""} for usage in session.usage_records],
        "outputs": [client.read_tool_result(session_id, row.tool_result_id, limit=10**6).content for row in results],
    }


def states(report: Any) -> dict[str, str]:
    return {row.session_id: row.state for row in report.sessions}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_export_has_the_layout_of_the_viking_tree(source: Client, tmp_path: Path) -> None:
    report = export_sessions(source, tmp_path / "out")
    sessions = tmp_path / "out/user/default/sessions"
    assert [(row.session_id, row.messages, row.state) for row in report.sessions] == [
        ("trip", 4, "exported"),
        ("trip-by-bus", 3, "exported"),
        ("Trip-by-bus-2", 3, "exported"),
        ("old", 0, "exported"),
    ]
    assert sorted(str(path.relative_to(sessions / "trip")) for path in (sessions / "trip").rglob("*.*")) == [
        ".meta.json",
        ".relations.json",
        "messages.jsonl",
        "tools/call_1/tool.json",
        f"tools/call_1/{source.list_tool_results('trip').tool_results[0].tool_result_id}.txt",
    ]
    lines = (sessions / "trip/messages.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [message.to_dict() for message in source.session("trip").messages]
    meta = json.loads((sessions / "trip-by-bus/.meta.json").read_text("utf-8"))
    assert (meta["title"], meta["metadata"], meta["forked_from"]) == (
        "By bus",
        {"by": "bus", "n": {"b": 1, "a": 2}, "year": 1},
        {"session_id": "trip", "seq": 2},
    )
    uses = json.loads((sessions / "trip/.relations.json").read_text("utf-8"))["uses"]
    assert [use["uri"] for use in uses] == ["viking://resources/a.md", "viking://resources/b.md", "viking://skills/s"]


def test_the_folder_of_a_tool_has_its_calls_and_its_whole_output(source: Client, tmp_path: Path) -> None:
    export_sessions(source, tmp_path / "out", ["trip"])
    folder = tmp_path / "out/user/default/sessions/trip/tools/call_1"
    tool = json.loads((folder / "tool.json").read_text("utf-8"))
    assert [(call["seq"], call["part"], call["tool_status"]) for call in tool["calls"]] == [
        (2, 0, "pending"),
        (3, 0, "completed"),
    ]
    assert (folder / tool["calls"][1]["output_file"]).read_bytes().decode() == LOG


def test_importing_an_export_gives_the_same_sessions(source: Client, destination: Client, tmp_path: Path) -> None:
    export_sessions(source, tmp_path / "out")
    report = import_path(destination, tmp_path / "out")
    assert (report.format, set(states(report).values()), report.failed) == ("holdfast", {"imported"}, [])
    assert [(row.messages, row.added) for row in report.sessions] == [(4, 4), (3, 1), (3, 0), (0, 0)]
    assert read_all(destination) == read_all(source)


def test_an_imported_fork_keeps_its_creation_time(source: Client, destination: Client, tmp_path: Path) -> None:
    export_sessions(source, tmp_path / "out")
    import_path(destination, tmp_path / "out")
    assert destination.get_session("trip-by-bus").created_at == source.get_session("trip-by-bus").created_at


def test_export_and_import_work_through_a_server(source: Client, tmp_path: Path) -> None:
    export_sessions(source, tmp_path / "first")
    with running_server(tmp_path / "server.db") as server, holdfast.connect(server.url) as destination:
        assert set(states(import_path(destination, tmp_path / "first")).values()) == {"imported"}
        assert read_all(destination) == read_all(source)
        assert set(states(import_path(destination, tmp_path / "first")).values()) == {"already there"}
        export_sessions(destination, tmp_path / "second", ["trip", "old"])
    second = files(tmp_path / "second/user")
    assert second == {name: files(tmp_path / "first/user")[name] for name in second}
    assert len(second) == 8


def test_a_second_import_changes_nothing(source: Client, destination: Client, tmp_path: Path) -> None:
    export_sessions(source, tmp_path / "out")
    import_path(destination, tmp_path / "out")
    before = [destination.get_session(row.session_id) for row in destination.list_sessions()]
    again = import_path(destination, tmp_path / "out")
    assert set(states(again).values()) == {"already there"}
    assert sum(row.added for row in again.sessions) == 0
    assert [destination.get_session(row.session_id) for row in destination.list_sessions()] == before


def test_a_dry_run_reports_what_would_be_done_and_changes_nothing(
    source: Client, destination: Client, tmp_path: Path
) -> None:
    export_sessions(source, tmp_path / "out")
    report = import_path(destination, tmp_path / "out", dry_run=True)
    assert (report.dry_run, set(states(report).values())) == (True, {"imported"})
    assert destination.list_sessions() == []
    destination.create_session("old")
    assert states(import_path(destination, tmp_path / "out", dry_run=True))["old"] == "failed"


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda client: client.update_session("trip", title="Another"), "these fields differ: title"),
        (lambda client: client.update_session("trip", metadata={"year": True}), "these fields differ: metadata"),
        (lambda client: client.update_session_config("trip", memory_policy=None), "these fields differ: settings"),
        (lambda client: client.update_session("trip", state="archived"), "it is archived"),
        (lambda client: client.add_message("trip", "user", "more"), "more messages than the 4"),
        (lambda client: client.session_used("trip", ["viking://x"]), "its recorded use 4"),
        (lambda client: recreate(client, "fewer uses"), "its recorded use 1"),
        (lambda client: recreate(client, "other message"), "message 1"),
    ],
)
def test_a_session_with_different_content_fails_unchanged_and_the_others_are_imported(
    source: Client, destination: Client, tmp_path: Path, change: Callable[[Client], Any], difference: str
) -> None:
    export_sessions(source, tmp_path / "out", ["trip", "old"])
    import_path(destination, tmp_path / "out")
    change(destination)
    destination.delete_session("old")
    before = _read_session(destination, "trip")
    report = import_path(destination, tmp_path / "out")
    assert states(report) == {"trip": "failed", "old": "imported"}
    assert report.failed[0].reason.startswith("Session trip already exists with different content: ")
    assert difference in report.failed[0].reason
    assert _read_session(destination, "trip") == before


def recreate(client: Client, change: str) -> None:
    """Delete the session and create it again with different content."""
    info = client.get_session("trip")
    messages, uses = client.session("trip").messages, client.session("trip").usage_records
    client.delete_session("trip")
    client.create_session(
        "trip",
        title=info.title,
        metadata=info.metadata,
        created_at=info.created_at,
        memory_policy=info.memory_policy,
        memory_extraction_config=info.memory_extraction_config,
    )
    first = (
        {**messages[0].to_dict(), "parts": [TextPart("Who?"), *messages[0].parts[1:]]}
        if change == "other message"
        else messages[0].to_dict()
    )
    client.batch_add_messages("trip", [first])
    if change == "fewer uses":
        client.session_used("trip", [uses[1].uri], created_at=uses[1].created_at)


def test_a_partially_imported_session_is_completed(source: Client, destination: Client, tmp_path: Path) -> None:
    export_sessions(source, tmp_path / "out", ["trip"])
    import_path(destination, tmp_path / "out")
    source.add_message("trip", "user", "more")
    source.session_used("trip", ["viking://x"])
    export_sessions(source, tmp_path / "out", ["trip"])
    dry_run = import_path(destination, tmp_path / "out", dry_run=True)
    assert [(row.state, row.added) for row in dry_run.sessions] == [("completed", 1)]
    (row,) = import_path(destination, tmp_path / "out").sessions
    assert (row.state, row.messages, row.added) == ("completed", 5, 1)
    assert _read_session(destination, "trip") == _read_session(source, "trip")


def test_a_fork_whose_origin_is_not_in_the_export_becomes_an_ordinary_session(
    source: Client, destination: Client, tmp_path: Path
) -> None:
    source.delete_session("trip")
    source.add_message("trip", "user", "another session of the same name")
    export_sessions(source, tmp_path / "out")
    report = import_path(destination, tmp_path / "out")
    reasons = {row.session_id: row.reason for row in report.sessions if row.reason}
    assert reasons == {"trip-by-bus": "no longer a fork: its origin, trip, is not in this export"}
    assert destination.session("trip-by-bus").messages == source.session("trip-by-bus").messages
    assert destination.get_session("trip-by-bus").forked_from is None
    assert destination.get_session("Trip-by-bus-2").forked_from == source.get_session("Trip-by-bus-2").forked_from
    assert set(states(import_path(destination, tmp_path / "out")).values()) == {"already there"}
    assert set(states(import_path(source, tmp_path / "out")).values()) == {"already there"}


def test_a_fork_whose_stored_origin_has_other_messages_becomes_an_ordinary_session(
    source: Client, destination: Client, tmp_path: Path
) -> None:
    export_sessions(source, tmp_path / "out", ["trip", "trip-by-bus"])
    destination.add_message("trip", "user", "something else")
    report = import_path(destination, tmp_path / "out")
    assert states(report) == {"trip": "failed", "trip-by-bus": "imported"}
    assert report.sessions[1].reason == "no longer a fork: the stored trip lacks the shared messages"
    assert destination.session("trip-by-bus").messages == source.session("trip-by-bus").messages
    assert [message.text for message in destination.session("trip").messages] == ["something else"]


def test_a_fork_whose_metadata_cannot_be_set_by_an_update_becomes_an_ordinary_session(
    source: Client, destination: Client, tmp_path: Path
) -> None:
    """In an update, null removes a key. A fork can inherit a null value, but no update can set it."""
    source.create_session("null", metadata={"k": None})
    source.fork_session("null", new_session_id="child")
    source.update_session("null", metadata={"k": 1})
    export_sessions(source, tmp_path / "out", ["null", "child"])
    reason = "no longer a fork: its metadata has null for k, unlike that of null; an update cannot set null"
    for state in ("imported", "already there"):
        rows = import_path(destination, tmp_path / "out").sessions
        assert [(row.state, row.reason) for row in rows] == [(state, ""), (state, reason)]
    assert destination.get_session("child").metadata == {"k": None}


def test_a_fork_whose_origin_cannot_be_imported_becomes_an_ordinary_session(
    source: Client, destination: Client, tmp_path: Path
) -> None:
    export_sessions(source, tmp_path / "out", ["trip", "trip-by-bus"])
    folder = tmp_path / "out/user/default/sessions/trip"
    with (folder / "messages.jsonl").open("a") as file:
        file.write("damaged")
    rows = import_path(destination, tmp_path / "out").sessions
    assert [(row.state, row.reason) for row in rows][1:] == [
        ("imported", "no longer a fork: its origin, trip, is not stored")
    ]


def test_one_session_can_be_imported_from_its_folder_under_another_id(
    source: Client, destination: Client, tmp_path: Path
) -> None:
    export_sessions(source, tmp_path / "out")
    report = import_path(destination, tmp_path / "out/user/default/sessions/trip", session_id="trip-again")
    assert states(report) == {"trip-again": "imported"}
    assert destination.session("trip-again").messages == source.session("trip").messages
    with pytest.raises(InvalidArgumentError, match="session_id: names one session, but the source has several"):
        import_path(destination, tmp_path / "out", session_id="x")
    assert [row.session_id for row in destination.list_sessions()] == ["trip-again"]


def test_a_second_export_replaces_the_first_and_removes_deleted_sessions(source: Client, tmp_path: Path) -> None:
    export_sessions(source, tmp_path / "out")
    (tmp_path / "out/user/default/sessions/trip/stale.txt").write_text("of an earlier version")
    (tmp_path / "out/notes.md").write_text("mine")
    source.delete_session("old")
    report = export_sessions(source, tmp_path / "out")
    assert states(report) == dict.fromkeys(("trip", "trip-by-bus", "Trip-by-bus-2"), "exported") | {"old": "removed"}
    export_sessions(source, tmp_path / "fresh")
    assert (tmp_path / "out/notes.md").read_text() == "mine"
    (tmp_path / "out/notes.md").unlink()
    assert files(tmp_path / "out") == files(tmp_path / "fresh")


def test_an_export_of_selected_sessions_keeps_the_others_in_the_folder(
    source: Client, destination: Client, tmp_path: Path
) -> None:
    export_sessions(source, tmp_path / "out")
    source.add_message("trip", "user", "more")
    source.delete_session("old")
    assert states(export_sessions(source, tmp_path / "out", ["trip"])) == {"trip": "exported"}
    import_path(destination, tmp_path / "out")
    assert [row.session_id for row in destination.list_sessions()] == ["Trip-by-bus-2", "trip-by-bus", "trip", "old"]
    assert destination.session("trip").messages == source.session("trip").messages


def test_sessions_of_many_pages_are_exported_and_imported_completely(
    source: Client, destination: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (copying, sessions, creation):
        monkeypatch.setattr(module, "PAGE_SIZE", 2)
    monkeypatch.setattr(file_parts, "PART_CHARS", 99)
    monkeypatch.setattr(comparison, "OUTPUT_PAGE_CHARS", 4_999)
    monkeypatch.setattr(comparison, "MAX_BATCH_MESSAGES", 2)
    source.session_used("trip", skill={"uri": "viking://skills/s"}, created_at="2020-02-02T02:02:00Z")
    source.session_used("trip", ["viking://x", "viking://y"], created_at="2020-02-02T02:02:00Z")
    export_sessions(source, tmp_path / "out")
    assert set(states(import_path(destination, tmp_path / "out")).values()) == {"imported"}
    assert read_all(destination) == read_all(source)
    assert set(states(import_path(destination, tmp_path / "out")).values()) == {"already there"}


def test_an_unknown_session_is_rejected_before_anything_is_written(source: Client, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="Session nope not found"):
        export_sessions(source, tmp_path / "out", ["trip", "nope"])
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_content_is_rejected_and_left_unchanged(source: Client, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.md").write_text("mine")
    with pytest.raises(InvalidArgumentError, match=r"is not an export: it holds 'notes\.md'"):
        export_sessions(source, tmp_path / "mine")
    with pytest.raises(InvalidArgumentError, match="is a file; name a folder"):
        export_sessions(source, tmp_path / "mine/notes.md")
    export_sessions(source, tmp_path / "out")
    with (
        holdfast.connect(tmp_path / "source.db", user="bob") as bob,
        pytest.raises(InvalidArgumentError, match="holds an export of user default of account default"),
    ):
        export_sessions(bob, tmp_path / "out")
    assert files(tmp_path / "mine") == {"notes.md": b"mine"}


def test_progress_counts_messages(source: Client, destination: Client, tmp_path: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    export_sessions(source, tmp_path / "out", progress=lambda *step: steps.append(step))
    assert steps == [(4, 10, "trip"), (7, 10, "trip-by-bus"), (10, 10, "Trip-by-bus-2"), (10, 10, "")]
    steps.clear()
    import_path(destination, tmp_path / "out", progress=lambda *step: steps.append(step))
    assert [done for done, _, _ in steps] == sorted(done for done, _, _ in steps)
    assert (steps[-1], {total for _, total, _ in steps}) == ((10, 10, ""), {10})


def test_messages_added_during_an_export_are_not_in_it(source: Client, destination: Client, tmp_path: Path) -> None:
    """An export has the state of a session when its export began."""
    before = source.session("trip").messages

    def add(_done: int, _total: int, _session_id: str) -> None:
        source.add_message("trip", "user", "more")

    export_sessions(source, tmp_path / "out", ["trip"], add)
    assert states(import_path(destination, tmp_path / "out")) == {"trip": "imported"}
    assert destination.session("trip").messages == before


def test_a_session_deleted_during_an_export_is_left_out(source: Client, destination: Client, tmp_path: Path) -> None:
    def delete(_done: int, _total: int, session_id: str) -> None:
        if session_id == "trip":
            source.delete_session("trip-by-bus")

    assert states(export_sessions(source, tmp_path / "out", progress=delete))["trip-by-bus"] == "gone"
    assert "trip-by-bus" not in states(import_path(destination, tmp_path / "out"))


def test_a_long_session_is_not_held_in_memory(source: Client, tmp_path: Path) -> None:
    for _ in range(24):
        source.batch_add_messages("long", [{"role": "user", "content": "x" * 10_000}] * 100)
    source.wait_until_idle()  # indexing, which loads word vectors, would be measured, too
    with holdfast.connect(":memory:", settings=Settings(worker_threads=0)) as destination:
        tracemalloc.start()
        export_sessions(source, tmp_path / "out", ["long"])
        exported = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert [row.messages for row in import_path(destination, tmp_path / "out").sessions] == [2_400]
        imported = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert max(exported, imported) < 10_000_000  # the messages have 24 MB


def test_long_lines_are_not_held_in_memory_together(tmp_path: Path) -> None:
    """Lines of 3 MB: in a message, in a tool output, and in a recorded use."""
    line = "x" * 3_000_000
    with holdfast.connect(tmp_path / "source.db") as client:
        for number in range(8):
            client.add_message("long", "user", f"{number}{line}")
            client.add_message("long", "tool", parts=[ToolPart(tool_id=f"c{number}", output=f"{number}{line}")])
            client.session_used("long", skill={"uri": "viking://s", "input": f"{number}{line}"})
        client.wait_until_idle()  # as above
        tracemalloc.start()
        export_sessions(client, tmp_path / "out")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        with holdfast.connect(":memory:") as destination:
            import_path(destination, tmp_path / "out")
            assert _read_session(destination, "long") == _read_session(client, "long")
    assert peak < 36_000_000  # the lines have 72 MB; one at a time is decoded and encoded
