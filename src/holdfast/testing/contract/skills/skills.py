"""The contract of skills: adding, replacing, listing, reading and removing them, and counting their uses."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)

REVIEW = """---
name: code-review
description: >-
  Reviews changes of code.
  Use it for pull requests.
tags: [quality, code]
allowed-tools: Read Bash(git:*)
---
# Code review

## Steps
1. Read the change.
"""
TOOL = {
    "name": "search_web",
    "description": "Searches the web.",
    "inputSchema": {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to search for."}, "limit": {"type": "integer"}},
        "required": ["query"],
    },
}

REFUSED: list[tuple[Any, str]] = [
    ({}, "data.name: is missing"),
    ({"name": "a/b"}, "data.name: 'a/b' begins with a dot or has a slash"),
    ({"name": "validate"}, "is reserved"),
    ({"name": "x", "description": 7}, "data.description: is not a text"),
    ("skills/review", "there is no front matter"),
    ("---\nname: x\n", "no end"),
    ("---\nname: &x y\n---\n", "line 2 has a value that begins with &"),
    ("https://example.com/SKILL.md", "is a URL"),
    ('{"name": ', "is no JSON"),
]


class SkillContract:
    def test_a_skill_is_listed_and_read_by_level(self, client: Any) -> None:
        added = client.add_skill(REVIEW)
        uri = "viking://user/alice/skills/code-review"
        assert (added.status, added.action, added.uri, added.name) == ("success", "add", uri, "code-review")
        (listed,) = client.list_skills().skills
        assert (listed.name, listed.tags, listed.allowed_tools) == ("code-review", ["quality", "code"], _TOOLS)
        assert listed.description == "Reviews changes of code. Use it for pull requests."
        assert (listed.skill_md_uri, listed.root_uri) == (f"{uri}/SKILL.md", "viking://user/alice/skills")
        skill = client.get_skill("code-review")
        assert (skill.content, skill.version, skill.published) == (REVIEW, 1, False)
        assert len(skill.abstract) <= len(skill.overview) <= len(skill.content)
        levels = [client.get_skill("code-review", level=level) for level in (0, 1, 2)]
        assert [[name for name in ("abstract", "overview", "content") if getattr(each, name)] for each in levels] == [
            ["abstract"],
            ["overview"],
            ["content"],
        ]
        assert client.read(f"{uri}/SKILL.md") == REVIEW

    def test_a_skill_with_the_same_name_replaces_it_as_a_new_version(self, client: Any, tmp_path: Path) -> None:
        folder = _folder(tmp_path, {"SKILL.md": REVIEW, "scripts/check.py": "print(1)", "references/a b.md": "# A"})
        assert client.add_skill(folder).auxiliary_files == 2
        assert client.add_skill(folder).action == "none"
        (folder / "references/a b.md").unlink()
        (folder / "scripts/check.py").write_text("print(2)")
        (folder / "logo.bin").write_bytes(b"\x00\xff")
        assert client.update_skill("code-review", folder).action == "update"
        skill = client.get_skill("code-review")
        assert [file.path for file in skill.files] == ["SKILL.md", "logo.bin", "scripts", "scripts/check.py"]
        assert (skill.source.type, skill.source.path) == ("local", folder.name)
        script = f"{skill.uri}/scripts/check.py"
        assert [each.version for each in client.history(script).versions] == [2, 1]
        assert client.read(script, version=1) == "print(1)"
        assert client.restore(f"{skill.uri}/references/a b.md").restored == 1

    def test_a_removed_skill_can_be_restored(self, client: Any) -> None:
        client.add_skill(REVIEW)
        removed = client.remove_skill("code-review")
        assert (removed.name, removed.estimated_deleted_count) == ("code-review", 2)
        attempts: list[Callable[[], Any]] = [
            lambda: client.remove_skill("code-review"),
            lambda: client.get_skill("code-review"),
            lambda: client.update_skill("code-review", REVIEW),
        ]
        for attempt in attempts:
            with pytest.raises(NotFoundError, match="code-review"):
                attempt()
        client.restore(removed.uri)
        assert client.get_skill("code-review").content == REVIEW

    def test_what_is_no_skill_is_refused_and_nothing_is_stored(self, client: Any) -> None:
        for data, problem in REFUSED:
            with pytest.raises(InvalidArgumentError, match=problem):
                client.add_skill(data)
        assert client.list_skills().skills == []

    def test_names_and_descriptions_may_be_of_any_script(self, client: Any) -> None:
        added = client.add_skill({"name": "代码 审查", "description": "检查代码 — ünïcode", "content": "# 步骤"})
        assert added.warnings[0].rule == "name_format"
        assert client.get_skill("代码 审查").description == "检查代码 — ünïcode"
        assert client.add_skill({"name": "plain"}).warnings[0].rule == "description"
        assert [skill.name for skill in client.list_skills(limit=1).skills] == ["plain"]
        assert client.list_skills(limit=1).has_more

    def test_an_mcp_tool_becomes_a_skill_with_its_parameters(self, client: Any) -> None:
        client.add_skill(TOOL)
        content = client.get_skill("search_web").content
        assert "- `query` (string, required): What to search for." in content
        assert '"inputSchema"' in content
        assert client.get_skill("search_web").description == "Searches the web."

    def test_the_skills_of_an_archive_are_listed_and_chosen(self, client: Any, tmp_path: Path) -> None:
        files = {"a/SKILL.md": _skill("a"), "a/x.txt": "x", "more/b/skill.md": _skill("b"), "README.md": "no skill"}
        upload = client.upload(_zip(tmp_path / "skills.zip", files)).temp_file_id
        with pytest.raises(InvalidArgumentError, match="several skills: a, b"):
            client.add_skill(temp_file_id=upload)
        with pytest.raises(InvalidArgumentError, match="'c' is not in the upload; it has a, b"):
            client.add_skill(temp_file_id=upload, skills=["c"])
        listed = client.add_skill(temp_file_id=upload, list_only=True)
        assert [(each.name, each.auxiliary_files) for each in listed.skills] == [("a", 1), ("b", 0)]
        assert client.list_skills().skills == []
        client.add_skill(temp_file_id=upload, skills=["b"])
        assert [skill.name for skill in client.list_skills().skills] == ["b"]
        client.add_skill(temp_file_id=upload, skills=["*"])
        assert [skill.name for skill in client.list_skills().skills] == ["a", "b"]
        assert client.read("viking://~/skills/b/SKILL.md") == _skill("b")
        with pytest.raises(PermissionDeniedError, match="upload"):
            client.add_skill(temp_file_id="upload_unknown.zip")

    def test_an_archive_with_one_bad_skill_changes_nothing(self, client: Any, tmp_path: Path) -> None:
        archive = _zip(tmp_path / "s.zip", {"a/SKILL.md": _skill("a"), "b/SKILL.md": "no front matter"})
        with pytest.raises(InvalidArgumentError, match=r"b/SKILL\.md"):
            client.add_skill(archive, skills=["*"])
        assert client.list_skills().skills == []
        hostile = _zip(tmp_path / "t.zip", {"SKILL.md": _skill("t"), "../escape.md": "x", ".abstract.md": "x"})
        assert [warning.rule for warning in client.add_skill(hostile).warnings] == ["file", "file"]
        assert [file.path for file in client.get_skill("t").files] == ["SKILL.md"]

    def test_a_skill_that_was_written_as_files_is_a_skill(self, client: Any) -> None:
        client.write("viking://~/skills/hand/SKILL.md", "no front matter")
        client.mkdir("viking://~/skills/empty")
        assert [(each.name, each.description) for each in client.list_skills().skills] == [("hand", "")]
        assert client.get_skill("hand").content == "no front matter"
        client.mv("viking://~/skills/hand", "viking://~/skills/moved")
        assert [each.name for each in client.list_skills().skills] == ["moved"]

    def test_uses_count_for_the_skill_whatever_its_address(self, client: Any) -> None:
        client.add_skill(REVIEW)
        for uri in (
            "viking://agent/skills/code-review",
            "viking://agent/coder/skills/code-review/",
            "viking://user/skills/code-review/SKILL.md",
            "viking://~/skills/code-review",
        ):
            client.session_used("s", skill={"uri": uri, "input": "x", "success": uri.endswith("/")})
        for uri in ("no address", "viking://resources/code-review", "viking://user/bob/skills/code-review"):
            client.session_used("s", skill={"uri": uri})
        uses = client.get_skill("code-review").uses
        assert (uses.calls, uses.successes) == (4, 1)
        assert client.list_skills().skills[0].uses == uses
        assert uses.last_used_at is not None

    def test_a_skill_is_found_by_what_it_says_until_it_is_removed(
        self, client: Any, connect_as: Callable[..., Any]
    ) -> None:
        client.add_skill(REVIEW, wait=True)
        client.add_skill({"name": "bake", "description": "Bakes sourdough bread.", "content": "# Knead"}, wait=True)
        found = client.find_skills("review of a pull request").skills
        assert (found[0].name, found[0].published) == ("code-review", False)
        assert 0 < found[0].score <= 1
        assert len({each.uri for each in found}) == len(found)
        assert client.find("sourdough").skills[0].context_type == "skill"
        assert connect_as("acme", "bob", "user").find_skills("sourdough").skills == []
        client.remove_skill("bake")
        assert "bake" not in [each.name for each in client.find_skills("sourdough").skills]

    def test_a_source_that_is_not_fetched_is_refused(self, client: Any) -> None:
        client.add_skill(REVIEW)
        with pytest.raises(InvalidArgumentError, match="is 'code-review', but the data is of other"):
            client.update_skill("code-review", _skill("other"))
        with pytest.raises(InvalidArgumentError, match="target_uri"):
            client.list_skills(target_uri="viking://resources")

    def test_a_skill_is_validated_without_being_stored(self, client: Any) -> None:
        valid = client.validate_skill(REVIEW, strict=True, skill_dir_name="code-review")
        assert (valid.valid, valid.errors, valid.body_lines) == (True, [], 4)
        assert not client.validate_skill(REVIEW, strict=True, skill_dir_name="other").valid
        failed = client.validate_skill("skills/review")
        assert (failed.valid, failed.errors[0].rule) == (False, "front_matter")
        assert client.list_skills().skills == []


class PublishedSkillContract:
    def test_an_admin_publishes_a_skill_for_every_user_of_the_account(
        self, client: Any, connect_as: Callable[..., Any]
    ) -> None:
        client.create_session("s")  # the account exists
        bob, carol = connect_as("acme", "bob", "user"), connect_as("acme", "carol", "user")
        admin, rival = connect_as("acme", "boss", "admin"), connect_as("rival", "carol", "root")
        bob.add_skill(REVIEW)
        assert carol.list_skills().skills == []
        with pytest.raises(PermissionDeniedError, match="needs the role admin"):
            bob.publish_skill("code-review")
        with pytest.raises(PermissionDeniedError, match="administrator"):
            bob.add_skill(REVIEW, target_uri="viking://system/skills")
        published = admin.publish_skill("code-review", user_id="bob")
        assert published.uri == "viking://system/skills/code-review"
        (listed,) = carol.list_skills().skills
        assert (listed.uri, listed.published) == (published.uri, True)
        assert carol.get_skill("code-review").content == REVIEW
        assert carol.read("viking://agent/skills/code-review/SKILL.md") == REVIEW
        assert rival.list_skills().skills == []
        changes: list[Callable[[], Any]] = [
            lambda: carol.remove_skill("code-review", target_uri="viking://system/skills"),
            lambda: carol.write(f"{published.uri}/SKILL.md", "x"),
            lambda: carol.rm(published.uri, recursive=True),
            lambda: carol.unpublish_skill("code-review"),
        ]
        for change in changes:
            with pytest.raises(PermissionDeniedError):
                change()
        actions = [(each.action, each.user_id) for each in client.admin.list_audit(limit=50).records]
        assert ("PublishSkill", "boss") in actions

    def test_an_own_skill_hides_a_published_one(self, client: Any, connect_as: Callable[..., Any]) -> None:
        client.add_skill(REVIEW)
        client.publish_skill("code-review")
        client.add_skill(REVIEW + "\nMy own way.\n")
        assert [each.published for each in client.list_skills().skills] == [False, True]
        assert client.get_skill("code-review").content.endswith("My own way.\n")
        target = "viking://system/skills"
        assert client.get_skill("code-review", target_uri=target).content == REVIEW
        client.publish_skill("code-review")
        assert client.get_skill("code-review", target_uri=target).version == 2
        bob = connect_as("acme", "bob", "user")
        bob.session_used("s", skill={"uri": "viking://agent/skills/code-review"})
        assert bob.get_skill("code-review").uses.calls == 1
        assert client.get_skill("code-review").uses.calls == 0
        assert client.unpublish_skill("code-review").removed == 2
        with pytest.raises(NotFoundError):
            bob.get_skill("code-review")
        assert client.get_skill("code-review").published is False

    def test_skills_of_other_users_are_not_found(self, client: Any, connect_as: Callable[..., Any]) -> None:
        client.add_skill(REVIEW)
        bob = connect_as("acme", "bob", "user")
        assert bob.list_skills().skills == []
        attempts: list[Callable[[], Any]] = [
            lambda: bob.get_skill("code-review"),
            lambda: bob.list_skills(target_uri="viking://user/alice/skills"),
            lambda: bob.remove_skill("code-review", target_uri="viking://user/alice/skills"),
            lambda: bob.read("viking://user/alice/skills/code-review/SKILL.md"),
        ]
        for attempt in attempts:
            with pytest.raises(NotFoundError):
                attempt()

    def test_a_skill_that_cannot_be_fetched_again_stays(self, client: Any) -> None:
        client.add_skill(REVIEW)
        with pytest.raises((FailedPreconditionError, InvalidArgumentError)):
            client.update_skill("code-review")
        assert client.get_skill("code-review").content == REVIEW


_TOOLS = ["Read", "Bash(git:*)"]


def _skill(name: str) -> str:
    return f"---\nname: {name}\ndescription: The skill {name}.\n---\n# {name}\n"


def _folder(parent: Path, files: dict[str, str]) -> Path:
    folder = parent / "code-review"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


def _zip(path: Path, files: dict[str, str]) -> Path:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    path.write_bytes(packed.getvalue())
    return path
