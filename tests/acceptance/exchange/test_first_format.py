"""Exports of the first format, in which `messages.jsonl` has all messages, are still imported.

The folder `first_format` was written by the last Holdfast that wrote this format.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import Client, Settings
from holdfast.exchange import export_sessions, import_path

EXPORT = Path(__file__).parent / "first_format"
SESSIONS = EXPORT / "user/anna/sessions"
SMALL_OUTPUTS = Settings(tool_output_threshold=200, tool_output_preview=40)


@pytest.fixture
def client(target: str) -> Iterator[Client]:
    with holdfast.connect(target, user="anna", settings=SMALL_OUTPUTS) as client:
        yield client


def read_json(file: Path) -> Any:
    return msgspec.json.decode(file.read_bytes())


def test_an_export_of_the_first_format_is_imported_completely(client: Client) -> None:
    for state in ("imported", "already there"):
        report = import_path(client, EXPORT)
        assert [(row.session_id, row.messages, row.state, row.reason) for row in report.sessions] == [
            ("trip", 6, state, ""),
            ("Trip:by-bus", 5, state, ""),
            ("con", 5, state, ""),
            ("old", 0, state, ""),
        ]
    for meta_file in SESSIONS.glob("*/.meta.json"):
        meta = read_json(meta_file)
        info = client.get_session(meta["session_id"]).to_dict()
        assert {name: info.get(name) for name in meta if name != "message_count"} == {
            name: value for name, value in meta.items() if name != "message_count"
        }
        lines = meta_file.with_name("messages.jsonl").read_bytes().splitlines()
        messages = [message.to_dict() for message in client.session(meta["session_id"]).messages]
        assert messages == [msgspec.json.decode(line) for line in lines]
        uses = [use["uri"] for use in read_json(meta_file.with_name(".relations.json"))["uses"]]
        assert [use.uri for use in client.list_usage(meta["session_id"])] == uses
    results = client.list_tool_results("trip").tool_results
    outputs = {client.read_tool_result("trip", row.tool_result_id).content for row in results}
    assert outputs == {file.read_bytes().decode() for file in SESSIONS.glob("trip/tools/*/*.txt")}
    assert len(outputs) == 3


def test_an_export_into_a_folder_of_the_first_format_replaces_it(client: Client, tmp_path: Path) -> None:
    """With selected sessions, the folder then has sessions of both formats."""
    shutil.copytree(EXPORT, tmp_path / "out")
    import_path(client, EXPORT)
    client.wait_for_task(str(client.commit_session("trip").task_id))
    export_sessions(client, tmp_path / "out", ["trip"])
    assert read_json(tmp_path / "out/.export.json")["holdfast_export"] == 2
    assert (tmp_path / "out/user/anna/sessions/trip/messages.jsonl").read_bytes() == b""
    with holdfast.connect(":memory:", user="anna", settings=SMALL_OUTPUTS) as copy:
        report = import_path(copy, tmp_path / "out")
        assert {row.state for row in report.sessions} == {"imported"}
        for row in report.sessions:
            assert copy.get_messages(row.session_id) == client.get_messages(row.session_id)
            assert copy.get_session(row.session_id).forked_from == client.get_session(row.session_id).forked_from
    export_sessions(client, tmp_path / "out")
    export_sessions(client, tmp_path / "fresh")
    contents = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "out", tmp_path / "fresh")
    ]
    assert contents[0] == contents[1]
