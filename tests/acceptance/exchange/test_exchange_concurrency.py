"""Exports of a session that changes meanwhile: no message is lost, and none is in the export twice."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import Client, Settings, ToolPart
from holdfast.client.sync.transport import Transport
from holdfast.errors import ConflictError
from holdfast.exchange import export_sessions, file_parts, import_path
from holdfast.model.messages import Message
from holdfast.model.system import Backup

PART_CHARS = 150
"""Shorter than a message: a part ends inside of a line."""


class ChangingTransport:
    """A transport that makes a change before the call with the given number, or before each call."""

    def __init__(self, inner: Transport, change: Callable[[], None], number: int | None = None) -> None:
        self.inner = inner
        self.change = change
        self.number = number
        self.calls = 0

    def call(self, op: Any) -> Any:
        self.calls += 1
        if self.number in {None, self.calls}:
            self.change()
        return self.inner.call(op)

    def back_up(self, target: Path, *, overwrite: bool) -> Backup:
        return self.inner.back_up(target, overwrite=overwrite)

    def close(self) -> None:
        pass


@pytest.fixture
def client(target: str) -> Iterator[Client]:
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        for number in range(3):
            add(client, f"archived {number}")
        client.commit_session("chat")
        for number in range(3):
            add(client, f"live {number}")
        yield client


def add(client: Client, text: str) -> None:
    client.batch_add_messages(
        "chat",
        [
            {"role": "user", "content": text * 5},
            {"role": "tool", "parts": [ToolPart(tool_id="c1", output=text * 2_000)]},
        ],
    )


def exported_seqs(folder: Path) -> list[int]:
    session = folder / "user/default/sessions/chat"
    files = [*sorted(session.glob("history/*/messages.jsonl")), session / "messages.jsonl"]
    return [msgspec.json.decode(line)["seq"] for file in files for line in file.read_bytes().splitlines()]


def all_messages(client: Client) -> list[Message]:
    return client.get_messages("chat", limit=1_000).messages


def test_a_commit_before_any_call_of_an_export_loses_and_doubles_no_message(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_parts, "PART_CHARS", PART_CHARS * 10)
    number, calls = 0, 1
    while number < calls:
        number += 3

        def change() -> None:
            add(client, "meanwhile")
            client.commit_session("chat", keep_recent_count=1)
            add(client, "afterwards")

        before = all_messages(client)
        transport = ChangingTransport(client._transport, change, number)
        folder = tmp_path / f"out{number}"
        export_sessions(Client(transport), folder, ["chat"])
        calls = transport.calls
        seqs = exported_seqs(folder)
        assert seqs == list(range(1, len(seqs) + 1)), number
        with holdfast.connect(":memory:") as copy:
            assert [row.state for row in import_path(copy, folder).sessions] == ["imported"]
            imported = all_messages(copy)
        assert imported[: len(before)] == before
        assert imported == all_messages(client)[: len(imported)]
        client.delete_session("chat")
        add(client, "archived")
        client.commit_session("chat")
        add(client, "live")
    assert number > 20


def test_an_export_that_ends_a_part_inside_of_a_message_does_not_mix_two_messages(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a commit, the first line is another message. The two halves of such a line must not be joined."""
    monkeypatch.setattr(file_parts, "PART_CHARS", PART_CHARS)
    changed = False

    def change(_done: int, _total: int, _session_id: str) -> None:
        nonlocal changed
        if not changed:
            changed = True
            client.commit_session("chat", keep_recent_count=2)

    before = all_messages(client)
    export_sessions(client, tmp_path / "out", ["chat"], change)
    with holdfast.connect(":memory:") as copy:
        import_path(copy, tmp_path / "out")
        assert all_messages(copy) == before


def test_an_export_of_a_session_that_is_committed_all_the_time_is_given_up(client: Client, tmp_path: Path) -> None:
    def change() -> None:
        client.add_message("chat", "user", "more")
        client.commit_session("chat")

    with pytest.raises(ConflictError, match="committed during each of 10 attempts to export it; export again"):
        export_sessions(Client(ChangingTransport(client._transport, change)), tmp_path / "out", ["chat"])
    assert list((tmp_path / "out/user/default/sessions").iterdir()) == []
