"""What the commands for the tree say, on an embedded database and through a real server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast

Cli = Callable[..., Any]
NOTES = "viking://resources/notes"


@pytest.fixture
def notes(client: holdfast.Client) -> None:
    client.write(f"{NOTES}/list.md", "eggs\nmilk\nbread\ntea\n\nhoney\njam\n")
    client.write(f"{NOTES}/empty.txt", "")


@pytest.fixture
def mix(tmp_path: Path) -> Path:
    """A folder with files of which some cannot be added."""
    folder = tmp_path / "mix"
    (folder / "below").mkdir(parents=True)
    (folder / "good.md").write_text("# Good\n")
    (folder / "below" / "data.bin").write_bytes(b"\0\1\2")
    (folder / "link").symlink_to("good.md")
    return folder


@pytest.mark.parametrize(
    ("command", "notice"),
    [
        (["glob", "**/*.zip"], "Nothing in viking:// matches '**/*.zip'."),
        (["grep", "viking://resources", "plum"], "No line in viking://resources matches 'plum'."),
        (["relations", "viking://resources"], "viking://resources has no relations."),
        (["task", "watch", "ls"], "There are no watches."),
        (["task", "list", "--status", "failed"], "There are no such tasks."),
        (["skills", "list"], "There are no skills."),
        (["skills", "find", "plum"], "A new skill can be found some seconds after it is added."),
        (["ls", "viking://resources"], "There are no entries."),
    ],
)
def test_an_empty_result_is_a_notice_but_not_in_json(cli_ok: Cli, command: list[str], notice: str) -> None:
    done = cli_ok(*command)
    assert (done.out, done.err.count("\n")) == ("", 1)
    assert notice in done.err
    assert cli_ok(*command, "-o", "json").err == ""
    assert cli_ok(*command, "-o", "jsonl").err == ""


@pytest.mark.usefixtures("notes")
def test_a_list_shows_no_time_and_no_size_where_there_is_none(cli_ok: Cli) -> None:
    rows = {line.split()[0]: line.split()[1:] for line in cli_ok("ls", NOTES).out.splitlines()}
    assert rows["empty.txt"][0] == "0"
    assert rows["list.md"][0] == "31"
    for command in ("ls", "tree"):
        root = {line.split()[0]: line.split()[1:] for line in cli_ok(command).out.splitlines()}
        assert (root["user/"][:2], root["resources/"][0]) == (["-", "-"], "-")


@pytest.mark.usefixtures("notes")
def test_a_mode_is_shown_as_letters(cli_ok: Cli) -> None:
    details = dict(line.split(maxsplit=1) for line in cli_ok("stat", f"{NOTES}/list.md").out.splitlines())
    assert details["mode"] == "-rw-r--r--"
    assert cli_ok("stat", f"{NOTES}/list.md", "-o", "json").json["mode"] == 0o644
    details = dict(line.split(maxsplit=1) for line in cli_ok("stat", "viking://user").out.splitlines())
    assert (details["mode"], details["mod_time"]) == ("dr-xr-xr-x", "-")


@pytest.mark.usefixtures("notes")
def test_lines_around_matches_are_lines_with_their_numbers(cli_ok: Cli) -> None:
    found = cli_ok("grep", NOTES, "milk|bread|jam", "--context", "1")
    assert found.out.splitlines() == [
        f"{NOTES}/list.md",
        "1-eggs",
        "2:milk",
        "3:bread",
        "4-tea",
        "--",
        "6-honey",
        "7:jam",
    ]
    assert len(cli_ok("grep", NOTES, "milk|jam", "-C", "1", "-o", "jsonl").jsonl) == 2


def test_arguments_in_the_wrong_order_are_an_error_that_shows_the_order(cli: Cli) -> None:
    for command, right in (
        (["grep", "plum", "viking://resources"], "use: holdfast grep viking://resources 'time ?out'"),
        (["glob", "viking://resources", "*.md"], "use: holdfast glob '**/*.md' viking://resources"),
    ):
        done = cli(*command)
        assert (done.code, done.out) == (2, "")
        assert right in done.err


@pytest.mark.usefixtures("notes")
def test_changes_are_sentences_with_the_right_plural(cli_ok: Cli, client: holdfast.Client) -> None:
    copied = cli_ok("cp", f"{NOTES}/list.md", f"{NOTES}/copy.md").out
    assert copied == f"Copied {NOTES}/list.md to {NOTES}/copy.md (1 file).\n"
    client.write(f"{NOTES}/copy.md", "changed")
    assert "(its version is 3)." in cli_ok("restore", f"{NOTES}/copy.md", "--version", "1").out
    assert cli_ok("tags", "set", NOTES, "draft").out == "Changed the tags of 1 item.\n"
    assert cli_ok("tags", "set", NOTES, "draft").out == "Nothing changed: 1 item had these tags already.\n"
    tagged = cli_ok("tags", "set", NOTES, "draft", "--recursive").out
    assert tagged == "Changed the tags of 3 items. 1 item had these tags already.\n"
    cli_ok("rm", NOTES, "--recursive")
    assert cli_ok("restore", NOTES).out == f"Restored {NOTES} (4 items).\n"


@pytest.mark.usefixtures("notes")
def test_errors_name_options_of_the_command_line(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    table = tmp_path / "prices.csv"
    table.write_text("name,price\nplum,3\n")
    pack = tmp_path / "notes.ovpack"
    cli("pack", "export", NOTES, str(pack))
    for command, expected in (
        (["cp", NOTES, "viking://resources/other"], f"{NOTES} is a folder; use --recursive to copy it"),
        (["rm", NOTES], "use --recursive to remove it"),
        (["write", f"{NOTES}/list.md", "x", "--create"], "exists already; leave out --create to replace it"),
        (["pack", "import", str(pack), "viking://resources"], "import with --on-conflict overwrite or skip"),
        (
            ["pack", "import", str(table), "viking://resources"],
            "error: 'prices.csv' is no pack: it is not a zip",
        ),
        (["skills", "add", "-"], "error: SOURCE: "),
        (["add-resource", " "], "error: PATH: is empty"),
        (["download", NOTES], f"error: URI: {NOTES} is a folder; download a file in it"),
    ):
        done = cli(*command)
        assert done.code == 1, command
        assert expected in done.err


def test_files_that_are_left_out_are_named_once_and_the_resource_is_incomplete(cli: Cli, mix: Path) -> None:
    done = cli("add-resource", str(mix))
    head, row = done.out.splitlines()
    assert (done.code, head.split()[1], row.split()[1:3], row.split()[-1]) == (1, "status", ["incomplete", "1"], "2")
    assert sorted(done.err.splitlines()) == [
        "left out: below/data.bin: contains NUL bytes, so it is binary data and not a text",
        "left out: link: is a symbolic link",
    ]


def test_a_resource_whose_name_is_taken_says_how_to_update_the_first(cli_ok: Cli, tmp_path: Path) -> None:
    source = tmp_path / "guide.md"
    source.write_text("# Guide\n")
    numbered = tmp_path / "guide_7.md"
    numbered.write_text("# Another guide\n")
    assert cli_ok("add-resource", str(source)).err == ""
    again = cli_ok("add-resource", str(source))
    assert "viking://resources/guide_1" in again.out
    assert again.err == (
        "viking://resources/guide exists already."
        f" To update it: holdfast add-resource {source} --to 'viking://resources/guide'\n"
    )
    assert cli_ok("add-resource", str(source), "--to", "viking://resources/guide").err == ""
    assert cli_ok("add-resource", str(numbered)).err == ""


def test_a_task_has_a_subject(cli_ok: Cli, tmp_path: Path) -> None:
    source = tmp_path / "plan.md"
    source.write_text("# Plan\n")
    cli_ok("add-resource", str(source))
    head, row = cli_ok("task", "list", "--type", "add_resource").out.splitlines()
    assert (head.split()[4], row.split()[4]) == ("subject", "viking://resources/plan")


def test_a_skill_is_shown_without_json(cli_ok: Cli, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text(
        "---\nname: review\ndescription: Reviews code.\nallowed-tools: Read Write\n---\n# Review\n"
    )
    cli_ok("skills", "add", str(tmp_path / "SKILL.md"))
    shown = cli_ok("skills", "show", "review").out
    assert not set("{[") & set(shown)
    details = dict(line.split(maxsplit=1) for line in shown.splitlines() if len(line.split()) > 1)
    assert (details["uses"], details["allowed_tools"]) == ("none", "Read, Write")


@pytest.mark.usefixtures("notes")
def test_a_narrow_terminal_shows_the_end_of_an_address_and_leaves_room_for_the_text(
    cli_ok: Cli, client: holdfast.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = "viking://resources/handbooks/of-the-whole-team/deployment/friday.md"
    client.write(uri, "Deploy with the blue button on Friday, and tell the others before you begin.\n", wait=True)
    for name, value in {"COLUMNS": "80", "FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    hits = cli_ok("find", "blue button", "--why").out.splitlines()
    best = next(line for line in hits if "friday.md" in line)
    assert "…" in best.split()[1]
    assert "Deploy with the blue button" in best
    assert max(len(line) for line in hits[1:]) <= 80
    monkeypatch.delenv("FORCE_COLOR")
    assert uri.removeprefix("viking://") in cli_ok("find", "blue button").out
