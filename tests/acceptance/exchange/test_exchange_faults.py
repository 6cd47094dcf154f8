"""Killed exports and imports, full disks and damaged files."""

import errno
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Client, ToolPart
from holdfast.client.sync.transport import Transport
from holdfast.errors import ConflictError, InvalidArgumentError, UnavailableError
from holdfast.exchange import export_sessions, import_path
from holdfast.model.system import Backup

LOG = "line: ok\n" * 2_000


def fill(client: Client) -> None:
    client.create_session("a", title="A", metadata={"k": 1})
    for number in range(3):
        part = ToolPart(tool_id="call_1", tool_name="t", output=LOG)
        client.batch_add_messages("a", [{"role": "user", "content": f"m{number}"}, {"role": "tool", "parts": [part]}])
    client.session_used("a", ["viking://x", "viking://y"])
    client.session_used("a", ["viking://z"], {"uri": "viking://skill", "output": [1]})
    client.fork_session("a", 3, new_session_id="b", title="B")
    client.update_session("b", metadata={"k": None, "j": 2})
    client.update_session_config("b", memory_policy={"memory_types": ["events"]})
    client.add_message("b", "user", "only in the fork")
    client.session_used("b", ["viking://x"])
    client.fork_session("b", new_session_id="c")
    client.update_session("c", state="archived")


def read_all(client: Client) -> list[Any]:
    sessions = []
    for row in client.list_sessions():
        info = client.get_session(row.session_id).to_dict()
        session = client.session(row.session_id)
        uses = [{**usage.to_dict(), "id": ""} for usage in session.usage_records]
        times = ("updated_at", "created_at") if info["forked_from"] else ("updated_at",)
        known = {name: value for name, value in info.items() if name not in times}
        sessions.append((known, [message.to_dict() for message in session.messages], uses))
    return sessions


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Client]:
    with holdfast.connect(tmp_path / "source.db") as client:
        fill(client)
        yield client


@pytest.fixture
def export(source: Client, tmp_path: Path) -> Path:
    """The folder of an export."""
    export_sessions(source, tmp_path / "out")
    return tmp_path / "out"


def session_folder(export: Path, session_id: str) -> Path:
    return export / "user/default/sessions" / session_id


class KilledError(BaseException):
    pass


class FailingTransport:
    """A transport that raises an error instead of the call with the given number."""

    def __init__(self, inner: Transport, number: int) -> None:
        self.inner = inner
        self.calls_left = number

    def call(self, op: Any) -> Any:
        self.calls_left -= 1
        if self.calls_left == 0:
            raise KilledError
        return self.inner.call(op)

    def back_up(self, target: Path, *, overwrite: bool) -> Backup:
        return self.inner.back_up(target, overwrite=overwrite)

    def close(self) -> None:
        pass


def test_an_import_killed_at_any_call_is_completed_by_the_next(source: Client, export: Path, target: str) -> None:
    expected, number, killed = read_all(source), 0, True
    with holdfast.connect(target) as destination:
        while killed:
            number += 1
            try:
                import_path(Client(FailingTransport(destination._transport, number)), export)
                killed = False
            except KilledError:
                pass
            report = import_path(destination, export)
            assert (report.failed, read_all(destination)) == ([], expected)
            assert killed or {row.state for row in report.sessions} == {"already there"}
            for row in destination.list_sessions():
                destination.delete_session(row.session_id)
    assert number >= 25


KILL_EXPORTS = """
    import os, sys, holdfast
    from pathlib import Path
    from holdfast.exchange import export_sessions, import_path

    REMOVALS = {"os.rmdir", "os.remove"}
    CHANGES = {"open", "os.rename", "os.mkdir", *REMOVALS}
    database, out = sys.argv[1], Path(sys.argv[2])

    def files(folder):
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def export_until(number):
        left = number

        def watch(event, arguments):
            nonlocal left
            # Removals are reported with a name, not a path.
            is_inside = event in REMOVALS or str(arguments[0]).startswith(str(out))
            if event in CHANGES and is_inside:
                left -= 1
                if left == 0:
                    os._exit(9)

        with holdfast.connect(database) as client:
            sys.addaudithook(watch)
            export_sessions(client, out)
        os._exit(0)

    def check_export(number, complete):
        with holdfast.connect(":memory:") as client:
            if (out / ".export.json").exists():
                for row in import_path(client, out).sessions:
                    exists = (out / "user/default/sessions" / row.session_id).exists()
                    assert row.state == ("imported" if exists else "failed"), (number, row)
        for folder in out.glob("user/default/sessions/[!.]*"):
            for name, content in files(folder).items():
                expected_content = complete.get(f"user/default/sessions/{folder.name}/{name}")
                assert expected_content == content, (number, folder.name, name)

    expected = Path(sys.argv[3])
    with holdfast.connect(database) as client:
        export_sessions(client, expected)
    complete, number, killed = files(expected), 0, True
    while killed:
        number += 1
        child = os.fork()
        if child == 0:
            export_until(number)
        killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        check_export(number, complete)
        if number % 3 == 0:  # otherwise the next export continues from this state
            with holdfast.connect(database) as client:
                export_sessions(client, out)
            assert files(out) == complete, number
    assert files(out) == complete
    print(number)
"""


def test_an_export_killed_at_any_change_leaves_complete_sessions_and_is_finished_by_the_next(
    tmp_path: Path,
) -> None:
    with holdfast.connect(tmp_path / "source.db") as client:
        client.add_message("a", "tool", parts=[ToolPart(tool_id="call_1", output=LOG)])
        client.fork_session("a", new_session_id="b")
    code = textwrap.dedent(KILL_EXPORTS)
    arguments = [str(tmp_path / "source.db"), str(tmp_path / "out"), str(tmp_path / "expected")]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 30


@pytest.mark.parametrize("after", [0, 3, 7])
def test_a_full_disk_raises_an_error_and_keeps_the_earlier_export(
    source: Client, export: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    before = {path: path.read_bytes() for path in export.rglob("*") if path.is_file()}
    syncs = 0

    def fail_when_full(descriptor: int) -> None:
        nonlocal syncs
        syncs += 1
        if syncs > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail_when_full)
    with pytest.raises(UnavailableError, match="cannot be written to: No space left on device"):
        export_sessions(source, export)
    monkeypatch.undo()
    assert {
        path: path.read_bytes() for path in export.rglob("*") if path.is_file() and path.suffix != ".partial"
    } == before


def test_an_error_of_the_progress_callback_is_not_reported_as_a_disk_error(source: Client, tmp_path: Path) -> None:
    def progress(_done: int, _total: int, _session_id: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        export_sessions(source, tmp_path / "out", progress=progress)
    assert list((tmp_path / "out/user/default/sessions").iterdir()) == []


def test_a_session_recreated_during_its_export_is_an_error(source: Client, tmp_path: Path) -> None:
    def replace(_done: int, _total: int, _session_id: str) -> None:
        source.delete_session("a")
        source.batch_add_messages("a", [{"role": "user", "content": "another"}] * 6)

    with pytest.raises(ConflictError, match="Session a was deleted and created again during the export"):
        export_sessions(source, tmp_path / "out", ["a"], replace)
    assert list((tmp_path / "out/user/default/sessions").iterdir()) == []


def truncate_messages(export: Path) -> None:
    file = session_folder(export, "a") / "messages.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))


def truncate_a_line(export: Path) -> None:
    file = session_folder(export, "a") / "messages.jsonl"
    file.write_bytes(file.read_bytes()[:-20])


def swap_lines(export: Path) -> None:
    file = session_folder(export, "a") / "messages.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))


def delete_an_output(export: Path) -> None:
    next((session_folder(export, "a") / "tools/call_1").glob("*.txt")).unlink()


def truncate_an_output(export: Path) -> None:
    next((session_folder(export, "a") / "tools/call_1").glob("*.txt")).write_text("line")


def delete_the_meta(export: Path) -> None:
    (session_folder(export, "a") / ".meta.json").unlink()


def damage_the_relations(export: Path) -> None:
    (session_folder(export, "a") / ".relations.json").write_text('{"uses": [{"kind": "x"}]}')


def reference_a_file_outside(export: Path) -> None:
    file = session_folder(export, "a") / "messages.jsonl"
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    lines[1]["parts"][0]["tool_result_id"] = "../../../../../../secret"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncate_messages, "messages.jsonl: has 5 of 6 messages"),
        (truncate_a_line, "messages.jsonl, line 6: is damaged"),
        (swap_lines, "messages.jsonl, line 1: has seq 2 instead of 1"),
        (delete_an_output, ".txt: is missing"),
        (truncate_an_output, ".txt: has 4 of 18000 characters"),
        (delete_the_meta, ".meta.json: is missing"),
        (damage_the_relations, ".relations.json: is damaged"),
        (reference_a_file_outside, "tool_result_id: '../../../../../../secret' is not allowed"),
    ],
)
def test_a_damaged_session_fails_and_the_others_are_imported(
    export: Path, tmp_path: Path, damage: Any, reason: str
) -> None:
    damage(export)
    with holdfast.connect(":memory:") as destination:
        report = import_path(destination, export)
        assert [(row.session_id, row.state) for row in report.sessions] == [
            ("a", "failed"),
            ("b", "imported"),
            ("c", "imported"),
        ]
        assert reason in report.failed[0].reason
        assert [row.session_id for row in destination.list_sessions()] == ["c", "b"]


def test_unknown_files_are_ignored(source: Client, export: Path) -> None:
    """A later version may write more files and fields."""
    folder = session_folder(export, "a")
    (folder / "history/archive_001").mkdir(parents=True)
    (folder / "history/archive_001/messages.jsonl").write_text("{}\n")
    (folder / ".abstract.md").write_text("# A\n")
    meta = json.loads((folder / ".meta.json").read_text())
    (folder / ".meta.json").write_text(json.dumps({**meta, "commit_count": 1}))
    with holdfast.connect(":memory:") as destination:
        assert import_path(destination, export).failed == []
        assert read_all(destination) == read_all(source)


def test_an_export_of_a_later_version_is_rejected(export: Path) -> None:
    manifest = json.loads((export / ".export.json").read_text())
    (export / ".export.json").write_text(json.dumps({**manifest, "holdfast_export": 3}))
    with holdfast.connect(":memory:") as destination, pytest.raises(InvalidArgumentError, match="has version 3"):
        import_path(destination, export)
