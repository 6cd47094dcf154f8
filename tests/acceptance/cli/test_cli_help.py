"""Help, generated documentation, shell completion and usage errors."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.cli import main, program
from holdfast.cli.options import SharedOptions, list_commands
from holdfast.exchange import FORMATS

ROOT = Path(__file__).parents[3]


USAGE_ERRORS = [
    ("session", "lst"),
    ("session", "get"),
    ("session", "get", "a", "b"),
    ("session", "list", "--nope"),
    ("session", "list", "--limit", "many"),
    ("session", "list", "--limit", "1", "--all"),
    ("session", "list", "-o", "xml"),
    ("session", "add-message", "a", "--content", "x"),
    ("session", "add-message", "a", "--role", "user"),
    ("session", "add-message", "a", "--role", "robot", "--content", "x"),
    ("session", "add-message", "a", "--role", "user", "--parts", "{}"),
    ("session", "add-message", "a", "--role", "user", "--parts", "@/nowhere"),
    ("session", "add-message", "a", "--role", "user", "--parts", "-", "--content", "-"),
    ("session", "add-messages", "a", "{bad"),
    ("session", "add-messages", "a", '{"role":"user"}\n{bad'),
    ("session", "new", "--metadata", "[1]"),
    ("share", "add", "a", "bob", "--right", "own"),
    ("share", "add", "a", "bob", "--expires-in", "soon"),
    ("search",),
    ("search", "x", "--type", "song"),
    ("find", "x", "--type", "message"),
    ("share", "leave", "a"),
    ("share", "transfer", "a", "bob", "--keep", "none", "--keep", "read"),
    ("resummarise", "--all", "--owner", "alice"),
    ("admin", "user", "set-role", "a", "b", "root"),
    ("admin", "key", "create", "a", "b", "--expires-in", "soon"),
    ("admin", "key", "create", "a", "b", "--expires-in", "d"),
    ("--url", "ftp://x", "session", "list"),
    ("--path", "http://x", "session", "list"),
    ("--path", "x", "--url", "http://x", "session", "list"),
    ("--path", "", "status"),
    ("serve", "--url", "http://x"),
    ("serve", "--port", "x"),
]


@pytest.mark.parametrize("args", USAGE_ERRORS, ids=" ".join)
def test_a_usage_error_prints_one_line_and_exits_with_2(
    args: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert main(args) == 2
    assert not (tmp_path / "data").exists()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Value error" not in err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_command_suggests_a_similar_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["session", "lst"]) == 2
    assert "Did you mean 'list'" in capsys.readouterr().err


@pytest.mark.parametrize("args", [(), ("session",), ("admin",), ("admin", "key")], ids=" ".join)
def test_a_group_without_a_command_prints_its_help(args: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert ("Commands:" in out, err) == (True, "")


def every_command() -> list[tuple[str, ...]]:
    def below(group: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [
            command_path
            for name, command in group.commands.items()
            for command_path in [
                (*path, name),
                *(below(command, (*path, name)) if hasattr(command, "commands") else []),
            ]
        ]

    return below(program(), ())


@pytest.mark.parametrize("path", every_command(), ids=" ".join)
def test_the_help_of_every_command_has_an_example(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    help_text = capsys.readouterr().out
    assert help_text.startswith(f"Usage: holdfast {' '.join(path)} ")
    if "Commands:" not in help_text:
        assert re.search(rf"Examples?:\n( +\$ holdfast .*\n)* +\$ holdfast .*{' '.join(path)}", help_text)
        assert "--output" in help_text


def test_every_example_can_be_parsed() -> None:
    for command in list_commands(program()):
        for line in re.findall(r"\$ holdfast (.*)", command.epilog):
            words = subprocess.run(
                ["bash", "-c", f"printf '%s\\0' {line.split(' < ')[0]}"], capture_output=True, text=True, check=True
            ).stdout.split("\0")[:-1]
            root: Any = program()
            context = root.make_context("holdfast", words, obj=SharedOptions())
            while hasattr(context.command, "commands"):
                name, found, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
                context = found.make_context(name, rest, parent=context)
            assert context.command is not root


def test_the_generated_documentation_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/clidocs.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "40", "NO_COLOR": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_import_option_lists_every_format() -> None:
    (option,) = (param for param in program().commands["import"].params if param.name == "format")
    assert set(option.metavar.split("|")) == set(FORMATS)


def test_every_command_is_in_the_documentation() -> None:
    page = (ROOT / "docs/cli.md").read_text("utf-8")
    for path in every_command():
        assert re.search(rf"^##+ holdfast {' '.join(path)}$", page, re.MULTILINE)


def test_show_completion_prints_the_script_for_bash() -> None:
    # The script is for the shell that runs the command. Without `true`, bash would replace itself by the command.
    done = subprocess.run(
        ["bash", "-c", '"$@"; true', "bash", sys.executable, "-m", "holdfast", "--show-completion"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "complete -o default -F _holdfast_completion holdfast" in done.stdout
    assert done.stderr == ""


def test_completion_offers_commands_options_values_and_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with holdfast.connect(tmp_path) as client, holdfast.connect(tmp_path, user="alice") as alice:
        client.create_session("chat_001")
        client.create_session("other")
        alice.create_session("chat_of_alice")
        alice.share_session("chat_of_alice", "default")

    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_HOLDFAST_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        with pytest.raises(SystemExit):
            main([])
        return capsys.readouterr().out.split()

    assert complete("holdfast session add-") == ["add-message", "add-messages"]
    assert complete("holdfast session add-message chat --ro") == ["--role"]
    assert complete("holdfast session list -o j") == ["json", "jsonl"]
    assert complete(f"holdfast --path {tmp_path} session get ch") == ["chat_001"]
    assert complete(f"holdfast session get --path {tmp_path} ch") == ["chat_001"]
    assert complete(f"holdfast session get --path {tmp_path} --owner alice ch") == ["chat_of_alice"]
    assert complete("holdfast share add chat_001 bob --right ") == ["read", "write", "invoke"]
    assert complete(f"holdfast --path {tmp_path}/none session get ch") == []
    assert not (tmp_path / "none").exists()
    monkeypatch.setenv("HOLDFAST_PATH", str(tmp_path))
    assert complete("holdfast session get ch") == ["chat_001"]
    monkeypatch.setenv("HOLDFAST_URL", "http://127.0.0.1:9")
    assert complete("holdfast session get ch") == []
