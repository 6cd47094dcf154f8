"""The program as a process: pipes, terminals, signals and exit codes."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.cli import main
from holdfast.cli.errors import describe_error
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.testing.clocks import advance_clock
from holdfast.testing.postgres import PostgresServer
from holdfast.testing.server import running_server

ROOT = Path(__file__).parents[3]
PROGRAM = [sys.executable, "-W", "error", "-m", "holdfast"]


def environment(**more: str) -> dict[str, str]:
    cleaned = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "COLUMNS"))}
    return cleaned | {"TERM": "xterm"} | more


def start(*args: str, stdin: str = "", cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *args],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        cwd=cwd,
        env=environment(**env),
    )


INTERRUPT = "\x03"
"""What Ctrl-C types."""


def in_terminal(*args: str, typed: str = "", columns: int = 60) -> tuple[int, str]:
    """Run the program in a terminal, type `typed` at its question; return its exit code and output."""
    terminal, program_side = pty.openpty()
    fcntl.ioctl(program_side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [*PROGRAM, *args],
        preexec_fn=lambda: os.login_tty(program_side),  # noqa: PLW1509 - the only way to get a controlling terminal
        env=environment(),
    )
    os.close(program_side)
    timeout = threading.Timer(30, process.kill)
    timeout.start()
    seen, is_interrupted = b"", False
    with suppress(OSError):  # Linux reports the end of the other side as an error
        while piece := os.read(terminal, 65536):
            seen += piece
            if typed and b"[y/N]" in seen:
                os.write(terminal, typed.encode())
                is_interrupted, typed = typed == INTERRUPT, ""
            # Python misses an interrupt in the moment before it reads a line. A person presses the keys again.
            while is_interrupted and not select.select([terminal], [], [], 1.0)[0]:
                os.write(terminal, INTERRUPT.encode())
    os.close(terminal)
    code = process.wait()
    timeout.cancel()
    return code, seen.decode()


def without_styles(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def test_a_session_is_used_embedded_and_then_through_a_server(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    assert start("--path", path, "session", "new", "--id", "chat").returncode == 0
    added = start("session", "add-messages", "chat", "-", "--path", path, stdin='{"role":"user","content":"Grüße"}\n')
    assert (added.returncode, added.stdout, added.stderr) == (0, "added 1 to chat; the last is message 1\n", "")
    with running_server(path) as server:
        served = start("--url", server.url, "session", "messages", "chat", "-o", "json")
        assert json.loads(served.stdout)["messages"][0]["parts"] == [{"type": "text", "text": "Grüße"}]
        stopped_url = server.url
    embedded = start("--path", path, "session", "messages", "chat", "-o", "json")
    assert embedded.stdout == served.stdout
    gone = start("--url", stopped_url, "status", HOLDFAST_HTTP_ATTEMPTS="1")
    assert (gone.returncode, gone.stdout) == (5, "")
    assert re.fullmatch(
        r"error: http://127.0.0.1:\d+ does not answer: .*check that the server is running there\n", gone.stderr
    )
    checked = start("--url", stopped_url, "doctor")
    assert (checked.returncode, checked.stderr) == (1, "")
    assert re.search(r"^fail +server +http", checked.stdout, re.MULTILINE)


def test_an_unauthorised_caller_exits_with_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*args: str) -> tuple[int, Any, str]:
        code = main([*args, "-o", "json"])
        out, err = capsys.readouterr()
        return code, json.loads(out or "null"), err

    with running_server(tmp_path, root_api_key="operator-key-0123456789") as server:
        monkeypatch.setenv("HOLDFAST_URL", server.url)
        for wrong in ((), ("--api-key", "hf.YWNtZQ.0123456789abcdef.wrong")):
            code, out, err = run("session", "list", *wrong)
            assert (code, out, err.count("\n"), "--api-key" in err) == (4, None, 1, True)
        admin = run("admin", "account", "create", "acme", "--api-key", "operator-key-0123456789")[1]["user_key"]
        bob = run("admin", "user", "create", "acme", "bob", "--api-key", admin)[1]["user_key"]
        monkeypatch.setenv("HOLDFAST_API_KEY", bob)
        assert run("session", "new", "--id", "chat")[0] == 0
        code, out, err = run("admin", "account", "list")
        assert (code, out, "needs the role root" in err) == (4, None, True)
        status = run("status")[1]
        assert (status["user_id"], status["is_healthy"], "queue" in status["components"]) == ("bob", True, True)
        assert run("doctor")[0] == 0


def test_version_loads_no_database_or_network_library() -> None:
    code = (
        "import sys; from holdfast.cli import main; main(['version'])\n"
        "print([m for m in 'apsw psycopg httpx2 starlette uvicorn asyncio rich.progress'.split() if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    version, loaded = done.stdout.splitlines()
    assert version.startswith(f"holdfast {holdfast.__version__} ")
    assert loaded == "[]"


def test_settings_come_from_the_environment_and_the_settings_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "holdfast.toml").write_text(f'path = "{tmp_path}/one"\n')
    (tmp_path / "other.toml").write_text(f'path = "{tmp_path}/two"\n')
    with monkeypatch.context() as named:
        named.setenv("HOLDFAST_CONFIG", str(tmp_path / "holdfast.toml"))
        assert main(["session", "new", "--id", "by-file"]) == 0
    assert main(["session", "new", "--id", "by-option", "--config", "other.toml"]) == 0
    monkeypatch.setenv("HOLDFAST_PATH", str(tmp_path / "three"))
    assert main(["session", "new", "--id", "by-environment"]) == 0
    monkeypatch.setenv("HOLDFAST_URL", "http://127.0.0.1:9")  # --path takes precedence
    for folder, name in (("one", "by-file"), ("two", "by-option"), ("three", "by-environment")):
        capsys.readouterr()
        assert main(["session", "list", "-o", "json", "--path", str(tmp_path / folder)]) == 0
        assert [row["session_id"] for row in json.loads(capsys.readouterr().out)] == [name]


def test_a_closed_pipe_ends_the_program_without_an_error(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        for _ in range(20):
            client.batch_add_messages("chat", [{"role": "user", "content": "x" * 1_000}] * 100)
    for output, unbuffered in (("jsonl", ""), ("json", "1"), ("table", "")):
        line = f'"$@" session messages chat --all -o {output} | head -n 1; echo "${{PIPESTATUS[0]}}"'
        done = subprocess.run(
            ["bash", "-c", line, "bash", *PROGRAM, "--path", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environment(PYTHONUNBUFFERED=unbuffered),
        )
        assert (done.stdout.splitlines()[1], done.stderr) == ("141", "")


def test_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "--path", str(tmp_path), "session", "list", "-o", "json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=environment(),
        )
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


def test_characters_that_the_terminal_cannot_encode_are_escaped(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        client.add_message("chat", "user", "Grüße 😀")
    table = start("--path", str(tmp_path), "session", "messages", "chat", PYTHONIOENCODING="ascii")
    assert r"Gr\xfc\xdfe \U0001f600" in table.stdout
    document = start("--path", str(tmp_path), "session", "messages", "chat", "-o", "json", PYTHONIOENCODING="ascii")
    assert json.loads(document.stdout)["messages"][0]["parts"][0]["text"] == "Grüße 😀"


def test_a_table_fits_the_terminal_by_shortening_only_the_text(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        client.add_message("chat", "assistant", "word " * 200)
    code, seen = in_terminal("--path", str(tmp_path), "session", "messages", "chat", columns=60)
    lines = without_styles(seen).splitlines()
    assert (code, len(lines)) == (0, 2)
    assert max(map(len, lines)) <= 60
    assert lines[1].rstrip().endswith("…")
    assert "assistant" in lines[1]
    assert "\x1b[1m" in seen
    piped = start("--path", str(tmp_path), "session", "messages", "chat").stdout
    assert max(map(len, piped.splitlines())) > 400


def test_deleting_a_session_on_a_terminal_asks_for_confirmation(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        client.create_session("chat")
        delete = ("--path", str(tmp_path), "session", "delete", "chat")
        code, seen = in_terminal(*delete, typed="n\n")
        assert (code, "Delete the session chat" in seen, "Nothing was changed." in seen) == (1, True, True)
        assert [row.session_id for row in client.list_sessions()] == ["chat"]
        assert in_terminal(*delete, typed=INTERRUPT)[0] == 130
        assert in_terminal(*delete, typed="y\n")[0] == 0
        assert client.list_sessions() == []
        client.create_session("chat")
        assert in_terminal(*delete, "--yes")[0] == 0


def test_a_progress_bar_is_drawn_only_on_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "messages.json"
    file.write_text(json.dumps([{"role": "user", "content": "x"}] * 250))
    add = ("--path", str(tmp_path), "session", "add-messages", "chat", f"@{file}")
    code, seen = in_terminal(*add, columns=100)
    assert (code, "adding to chat" in seen) == (0, True)
    assert start(*add).stderr == ""


def test_watching_a_task_on_a_terminal_shows_its_progress_and_result(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path, settings=holdfast.Settings(worker_threads=0)) as client:
        client.add_message("chat", "user", "Deploy the billing service, never on Fridays.")
        task_id = client.commit_session("chat").task_id
    code, seen = in_terminal("--path", str(tmp_path), "task", "watch", str(task_id), columns=120)
    assert code == 0
    assert re.search(rf"{task_id} ━.* 1/1 .* completed", without_styles(seen))
    assert re.search(r"status +completed", without_styles(seen))


def test_reading_a_file_prints_no_control_characters_to_a_terminal(tmp_path: Path) -> None:
    uri = "viking://session/chat/messages.jsonl"
    with holdfast.connect(tmp_path) as client:
        client.add_message("chat", "user", "turned \u202eround and \x9b31mred")
        client.add_message("chat", "user", "two")
        stored = client.read(uri)
    code, seen = in_terminal("--path", str(tmp_path), "read", uri, columns=200)
    assert (code, "turned round and" in seen, "\u202e" in seen, "\x9b" in seen) == (0, True, False, False)
    assert len(seen.splitlines()) == 2
    piped = start("--path", str(tmp_path), "read", uri).stdout
    assert (piped, "\u202e" in piped, "\x9b" in piped) == (stored, True, True)


@pytest.mark.parametrize("columns", [50, 80])
def test_tables_of_tasks_archives_and_files_fit_the_terminal(tmp_path: Path, columns: int) -> None:
    with holdfast.connect(tmp_path) as client:
        client.add_message("chat-with-a-rather-long-name", "user", "Deploy the billing service, never on Fridays. " * 9)
        client.wait_for_task(str(client.commit_session("chat-with-a-rather-long-name").task_id))
    uri = "viking://session/chat-with-a-rather-long-name"
    for command in (
        ("task", "list"),
        ("session", "archives", "chat-with-a-rather-long-name"),
        ("ls", "viking://session"),
        ("tree", uri, "--all"),
    ):
        code, seen = in_terminal("--path", str(tmp_path), *command, columns=columns)
        lines = without_styles(seen).splitlines()
        assert code == 0
        assert len(lines) >= 2
        assert all(len(line.rstrip()) <= columns for line in lines), seen


def test_an_interrupted_command_exits_with_130_and_changes_nothing(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        client.create_session("chat")
        reading = subprocess.Popen(
            [*PROGRAM, "--path", str(tmp_path), "session", "add-messages", "chat", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        assert reading.stdin
        # More than the pipe's buffer: once all is written, the command is reading.
        reading.stdin.write(b'{"role":"user","content":"x"}\n' * 100_000)
        reading.send_signal(signal.SIGINT)
        out, err = reading.communicate(timeout=30)
        assert (reading.returncode, out, err) == (130, b"", b"")
        assert client.get_session("chat").message_count == 0


def test_an_unexpected_error_is_reported_in_one_sentence() -> None:
    sentence, code = describe_error(KeyError("log_id"))
    assert code == 1
    assert re.search(r"a bug in holdfast, KeyError: 'log_id'; run with --traceback for details", sentence)


def test_the_traceback_option_prints_the_traceback(tmp_path: Path) -> None:
    shown = start("--path", str(tmp_path), "session", "get", "nobody", "--traceback")
    assert (shown.returncode, "Traceback" in shown.stderr) == (1, True)


def test_doctor_reports_problems_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.db").write_text("This is no database, but long enough to look at.")
    (tmp_path / "newer.db").touch()
    with holdfast.connect(tmp_path / "damaged.db") as client:
        for _ in range(5):
            client.batch_add_messages("chat", [{"role": "user", "content": "x" * 500}] * 100)
    content = bytearray((tmp_path / "damaged.db").read_bytes())
    content[-65536:-32768] = bytes(32768)
    (tmp_path / "damaged.db").write_bytes(content)

    def states(name: str) -> dict[str, str]:
        code = main(["doctor", "-o", "jsonl", "--path", str(tmp_path / name)])
        out, err = capsys.readouterr()
        found = {finding["name"]: finding["state"] for finding in map(json.loads, out.splitlines())}
        assert (code, err) == (1 if "fail" in found.values() else 0, "")
        return found

    assert states("notes.db")["database"] == "fail"
    assert states("damaged.db").get("integrity") == "fail"
    assert states("newer.db")["schema"] == "warn"
    assert states("none-yet")["database"] == "ok"
    assert states("notes.db/below")["database"] == "fail"
    monkeypatch.setenv("HOLDFAST_HTTP_ATTEMPTS", "many")
    assert states("none-yet")["settings"] == "fail"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged.db", "newer.db", "notes.db"]


def test_doctor_reports_a_clock_that_differs_from_the_clock_of_the_database_server(
    postgres: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgres.new_migrated_database()

    def database_clock() -> dict[str, str]:
        assert main(["doctor", "-o", "jsonl", "--path", url]) == 0
        findings = map(json.loads, capsys.readouterr().out.splitlines())
        return next(finding for finding in findings if finding["name"] == "database clock")

    assert database_clock()["state"] == "ok"
    with closing(PostgresDatabase(url)) as database:
        advance_clock(database, -60_000_000)
    warning = database_clock()
    assert warning["state"] == "warn"
    assert "60 s ahead of the database's" in warning["said"]


def test_serving_without_the_server_packages_explains_how_to_install_them(tmp_path: Path) -> None:
    """Failing imports simulate an environment without the extra."""
    code = (
        "import sys\nsys.modules['uvicorn'] = None\nsys.modules['starlette'] = None\n"
        "from holdfast.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", "--path", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(),
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: the server needs additional packages")
    assert "pip install 'holdfast[server]'" in done.stderr
