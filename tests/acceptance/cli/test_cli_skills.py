"""`holdfast skills`, on an embedded database and through a real server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast

Cli = Callable[..., Any]
TEXT = "---\nname: code-review\ndescription: Reviews code.\n---\n# Review\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "code-review"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEXT)
    (folder / "scripts" / "run.sh").write_text("true\n")
    return folder


def test_a_folder_is_added_listed_shown_updated_and_removed(cli_ok: Cli, client: holdfast.Client, folder: Path) -> None:
    added = cli_ok("skills", "add", str(folder), "--wait").out.splitlines()
    assert added[0].split() == ["name", "action", "files", "uri", "description"]
    assert added[1].split()[:3] == ["code-review", "add", "2"]
    assert cli_ok("skills", "list").out.splitlines()[1].split()[0] == "code-review"
    assert cli_ok("skills", "list", "--json").json == client.list_skills().to_dict()
    assert cli_ok("skills", "show", "code-review", "--level", "2").out == TEXT
    shown = cli_ok("skills", "show", "code-review").out
    assert "scripts/run.sh" in shown
    assert "# Review" in shown
    (folder / "scripts" / "run.sh").unlink()
    assert "Updated" in cli_ok("skills", "update", "code-review", str(folder)).out
    assert [file.path for file in client.get_skill("code-review").files or []] == ["SKILL.md"]
    assert "skills/code-review" in cli_ok("skills", "remove", "code-review").out
    assert cli_ok("skills", "list").out == ""


def test_a_tool_a_text_and_a_choice_of_several_are_added(cli: Cli, cli_ok: Cli, folder: Path, tmp_path: Path) -> None:
    tool = tmp_path / "tool.json"
    tool.write_text(json.dumps({"name": "search", "description": "Finds.", "inputSchema": {"type": "object"}}))
    cli_ok("skills", "add", str(tool))
    failed = cli("skills", "add", str(tmp_path / "nothing"))
    assert (failed.code, "not found" in failed.err) == (3, True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "SKILL.md").write_text("---\nname: other\n---\n")
    assert "several skills" in cli("skills", "add", str(tmp_path)).err
    listed = cli_ok("skills", "add", str(tmp_path), "--list").out
    assert [line.split()[1] for line in listed.splitlines()[1:]] == ["list", "list"]
    assert "description is missing" in cli_ok("skills", "add", str(tmp_path), "--skill", "other").err
    found = cli_ok("skills", "list", "--json").json["skills"]
    assert [skill["name"] for skill in found] == ["other", "search"]


def test_a_skill_is_validated_and_published(cli: Cli, cli_ok: Cli, folder: Path) -> None:
    assert cli("skills", "validate", str(folder), "--strict").code == 0
    (folder / "SKILL.md").write_text("---\nname: Code Review\n---\n")
    failed = cli("skills", "validate", str(folder), "--strict")
    assert (failed.code, "name_format" in failed.out) == (1, True)
    (folder / "SKILL.md").write_text(TEXT)
    cli_ok("skills", "add", str(folder))
    assert "viking://system/skills/code-review" in cli_ok("skills", "publish", "code-review").out
    rows = cli_ok("skills", "list", "--published").out.splitlines()
    assert rows[1].split()[:2] == ["code-review", "yes"]
    assert "Removed" in cli_ok("skills", "unpublish", "code-review").out
