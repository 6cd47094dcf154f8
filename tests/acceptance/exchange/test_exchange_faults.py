"""Exports and imports that are killed, disks that are full, files that are damaged."""

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
from holdfast.exchange.exporting import session_files

LOG = "line: ok\n" * 2_000


def tell(client: Client) -> None:
    client.create_session("a", title="A", metadata={"k": 1})
    for number in range(3):
        part = ToolPart(tool_id="call_1", tool_name="t", output=LOG)
        client.batch_add_messages("a", [{"role": "user", "content": f"m{number}"}, {"role": "tool", "parts": [part]}])
    client.session_used("a", ["viking://x", "viking://y"])
    client.session_used("a", ["viking://z"], {"uri": "viking://skill", "output": [1]})
    client.fork_session("a", 3, new_session_id="b", title="B")
    client.update_session("b", metadata={"k": None, "j": 2})
    client.update_session_config("b", memory_policy={"memory_types": ["events"]})
    client.add_message("b", "user", "on its own way")
    client.session_used("b", ["viking://x"])
    client.fork_session("b", new_session_id="c")
    client.update_session("c", state="archived")


def seen(client: Client) -> list[Any]:
    found = []
    for row in client.list_sessions():
        info = client.get_session(row.session_id).to_dict()
        session = client.session(row.session_id)
        uses = [{**usage.to_dict(), "id": ""} for usage in session.usage_records]
        times = ("updated_at", "created_at") if info["forked_from"] else ("updated_at",)
        known = {name: value for name, value in info.items() if name not in times}
        found.append((known, [message.to_dict() for message in session.messages], uses))
    return found


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Client]:
    with holdfast.connect(tmp_path / "here.db") as client:
        tell(client)
        yield client


@pytest.fixture
def export(here: Client, tmp_path: Path) -> Path:
    """The folder of an export."""
    export_sessions(here, tmp_path / "out")
    return tmp_path / "out"


def session_folder(export: Path, session_id: str) -> Path:
    return export / "user/default/sessions" / session_id


class KilledError(BaseException):
    pass


class Mortal:
    """A way to an engine that ends before the call with a number: which is after the one before it."""

    def __init__(self, inner: Transport, number: int) -> None:
        self.inner = inner
        self.left = number

    def call(self, op: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise KilledError
        return self.inner.call(op)

    def close(self) -> None:
        pass


def test_an_import_that_is_killed_at_any_call_is_completed_by_the_next(here: Client, export: Path, target: str) -> None:
    expected, number, killed = seen(here), 0, True
    with holdfast.connect(target) as there:
        while killed:
            number += 1
            try:
                import_path(Client(Mortal(there._transport, number)), export)
                killed = False
            except KilledError:
                pass
            report = import_path(there, export)
            assert (report.failed, seen(there)) == ([], expected)
            assert killed or {row.state for row in report.sessions} == {"already there"}
            for row in there.list_sessions():
                there.delete_session(row.session_id)
    assert number >= 25


EXPORT_AND_DIE = """
    import os, sys, holdfast
    from pathlib import Path
    from holdfast.exchange import export_sessions, import_path

    REMOVALS = {"os.rmdir", "os.remove"}
    CHANGES = {"open", "os.rename", "os.mkdir", *REMOVALS}
    place, out = sys.argv[1], Path(sys.argv[2])

    def files(folder):
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def export_until(number):
        left = number

        def watch(event, arguments):
            nonlocal left
            inside = event in REMOVALS or str(arguments[0]).startswith(str(out))  # removals tell names, not paths
            if event in CHANGES and inside:
                left -= 1
                if left == 0:
                    os._exit(9)

        with holdfast.connect(place) as client:
            sys.addaudithook(watch)
            export_sessions(client, out)
        os._exit(0)

    def check_what_is_left(number, whole):
        with holdfast.connect(":memory:") as client:
            if (out / ".export.json").exists():
                for row in import_path(client, out).sessions:
                    there = (out / "user/default/sessions" / row.session_id).exists()
                    assert row.state == ("imported" if there else "failed"), (number, row)
        for folder in out.glob("user/default/sessions/[!.]*"):
            for name, content in files(folder).items():
                found = whole.get(f"user/default/sessions/{folder.name}/{name}")
                assert found == content, (number, folder.name, name)

    expected = Path(sys.argv[3])
    with holdfast.connect(place) as client:
        export_sessions(client, expected)
    whole, number, died = files(expected), 0, True
    while died:
        number += 1
        child = os.fork()
        if child == 0:
            export_until(number)
        died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        check_what_is_left(number, whole)
        if number % 3 == 0:  # else the next one goes on from what this one left
            with holdfast.connect(place) as client:
                export_sessions(client, out)
            assert files(out) == whole, number
    assert files(out) == whole
    print(number)
"""


def test_an_export_that_is_killed_at_any_change_leaves_whole_sessions_and_the_next_one_finishes(
    tmp_path: Path,
) -> None:
    with holdfast.connect(tmp_path / "here.db") as client:
        client.add_message("a", "tool", parts=[ToolPart(tool_id="call_1", output=LOG)])
        client.fork_session("a", new_session_id="b")
    code = textwrap.dedent(EXPORT_AND_DIE)
    arguments = [str(tmp_path / "here.db"), str(tmp_path / "out"), str(tmp_path / "expected")]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 30


@pytest.mark.parametrize("after", [0, 3, 7])
def test_a_full_disk_is_told_and_leaves_the_earlier_export(
    here: Client, export: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    before = {path: path.read_bytes() for path in export.rglob("*") if path.is_file()}
    syncs = 0

    def full(number: int) -> None:
        nonlocal syncs
        syncs += 1
        if syncs > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnavailableError, match="cannot be written to: No space left on device"):
        export_sessions(here, export)
    monkeypatch.undo()
    assert {
        path: path.read_bytes() for path in export.rglob("*") if path.is_file() and path.suffix != ".partial"
    } == before


def test_a_failure_of_the_one_who_watches_is_not_taken_for_the_disks(here: Client, tmp_path: Path) -> None:
    def watch(_done: int, _total: int, _session_id: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        export_sessions(here, tmp_path / "out", progress=watch)
    assert list((tmp_path / "out/user/default/sessions").iterdir()) == []


def test_a_session_that_is_replaced_during_its_export_is_told(
    here: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(done: int, _total: int, _session_id: str) -> None:
        if done == 2:
            here.delete_session("a")
            here.batch_add_messages("a", [{"role": "user", "content": "another"}] * 6)

    monkeypatch.setattr(session_files, "PAGE", 2)
    with pytest.raises(ConflictError, match="Session a was replaced by another while it was exported"):
        export_sessions(here, tmp_path / "out", ["a"], replace)
    assert list((tmp_path / "out/user/default/sessions").iterdir()) == []


def cut_short(export: Path) -> None:
    file = session_folder(export, "a") / "messages.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))


def cut_in_a_line(export: Path) -> None:
    file = session_folder(export, "a") / "messages.jsonl"
    file.write_bytes(file.read_bytes()[:-20])


def swap_lines(export: Path) -> None:
    file = session_folder(export, "a") / "messages.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))


def lose_an_output(export: Path) -> None:
    next((session_folder(export, "a") / "tools/call_1").glob("*.txt")).unlink()


def shorten_an_output(export: Path) -> None:
    next((session_folder(export, "a") / "tools/call_1").glob("*.txt")).write_text("line")


def lose_the_meta(export: Path) -> None:
    (session_folder(export, "a") / ".meta.json").unlink()


def spoil_the_relations(export: Path) -> None:
    (session_folder(export, "a") / ".relations.json").write_text('{"uses": [{"kind": "x"}]}')


def reach_outside(export: Path) -> None:
    file = session_folder(export, "a") / "messages.jsonl"
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    lines[1]["parts"][0]["tool_result_id"] = "../../../../../../secret"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (cut_short, "messages.jsonl: has 5 of 6 messages"),
        (cut_in_a_line, "messages.jsonl, line 6: is damaged"),
        (swap_lines, "messages.jsonl, line 1: is message 2 where 1 should be"),
        (lose_an_output, ".txt: is missing"),
        (shorten_an_output, ".txt: has 4 of 18000 characters"),
        (lose_the_meta, ".meta.json: is missing"),
        (spoil_the_relations, ".relations.json: is damaged"),
        (reach_outside, "tool_result_id: '../../../../../../secret' is not allowed"),
    ],
)
def test_a_damaged_session_is_named_and_left_out_and_others_proceed(
    export: Path, tmp_path: Path, damage: Any, told: str
) -> None:
    damage(export)
    with holdfast.connect(":memory:") as there:
        report = import_path(there, export)
        assert [(row.session_id, row.state) for row in report.sessions] == [
            ("a", "failed"),
            ("b", "imported"),
            ("c", "imported"),
        ]
        assert told in report.failed[0].reason
        assert [row.session_id for row in there.list_sessions()] == ["c", "b"]


def test_files_that_are_not_known_are_passed_by(here: Client, export: Path) -> None:
    """Such as a later version may write."""
    folder = session_folder(export, "a")
    (folder / "history/archive_001").mkdir(parents=True)
    (folder / "history/archive_001/messages.jsonl").write_text("{}\n")
    (folder / ".abstract.md").write_text("# A\n")
    meta = json.loads((folder / ".meta.json").read_text())
    (folder / ".meta.json").write_text(json.dumps({**meta, "commit_count": 1}))
    with holdfast.connect(":memory:") as there:
        assert import_path(there, export).failed == []
        assert seen(there) == seen(here)


def test_an_export_of_a_later_version_is_refused(export: Path) -> None:
    manifest = json.loads((export / ".export.json").read_text())
    (export / ".export.json").write_text(json.dumps({**manifest, "holdfast_export": 2}))
    with holdfast.connect(":memory:") as there, pytest.raises(InvalidArgumentError, match="is of version 2"):
        import_path(there, export)
