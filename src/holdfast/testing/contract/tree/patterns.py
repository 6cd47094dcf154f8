"""The contract of searches by patterns, of tags and of relations."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, PermissionDeniedError

GUIDE = "viking://resources/guide"


def write_guide(client: Any) -> None:
    client.write(f"{GUIDE}/intro.md", "# Intro\nDeploy to Staging.\nThen test.\n")
    client.write(f"{GUIDE}/part 1/中文.md", "部署 staging\nsecond staging line\n")
    client.write(f"{GUIDE}/part 1/50%25.txt", "no match\n")
    client.write(f"{GUIDE}/.hidden/x.md", "staging\n")
    client.write("viking://~/resources/own.py", "STAGING = 1\n")


class PatternContract:
    def test_grep_finds_lines_in_a_file_a_folder_a_session_and_the_whole_tree(self, client: Any) -> None:
        write_guide(client)
        client.add_message("chat", "user", "We go to staging.")
        found = client.grep(GUIDE, "staging")
        assert [(each.uri.removeprefix(f"{GUIDE}/"), each.line) for each in found.matches] == [
            (".hidden/x.md", 1),
            ("part 1/中文.md", 1),
            ("part 1/中文.md", 2),
        ]
        assert (found.count, found.match_count, found.files_scanned, found.truncated) == (3, 3, 4, False)
        assert found.matches[1].content == "部署 staging"
        (line,) = client.grep(f"{GUIDE}/intro.md", "^deploy.*g\\.$", case_insensitive=True, before_context=5).matches
        assert (line.line, line.content, line.before, line.after) == (2, "Deploy to Staging.", ["# Intro"], [])
        (line,) = client.grep(f"{GUIDE}/intro.md", "Intro", after_context=2).matches
        assert line.after == ["Deploy to Staging.", "Then test."]
        (line,) = client.grep("viking://session/chat", "staging").matches
        assert (line.uri, line.line) == ("viking://user/alice/sessions/chat/messages.jsonl", 1)
        assert len(client.grep("viking://", "(?i)staging").matches) == 6
        assert len(client.grep("viking://", "(?i)staging", exclude_uri=GUIDE).matches) == 2
        assert len(client.grep(GUIDE, "(?i)staging", level_limit=1).matches) == 1
        assert client.grep(GUIDE, "staging", node_limit=2).truncated
        client.write(f"{GUIDE}/windows.txt", "one\r\ntwo end\r\nend.\r\n")
        (line,) = client.grep(f"{GUIDE}/windows.txt", "end$", after_context=1).matches
        assert (line.line, line.content, line.after) == (2, "two end", ["end."])
        assert len(client.grep(f"{GUIDE}/windows.txt", "\\r$").matches) == 3
        with pytest.raises(NotFoundError):
            client.grep(f"{GUIDE}/missing", "x")

    @pytest.mark.parametrize("pattern", ["", "(", r"(a)\1", "(?=a)", "(?<!a)b", "(a{1000}){1000}", "a{1001}"])
    def test_a_pattern_that_cannot_run_in_linear_time_is_refused(self, client: Any, pattern: str) -> None:
        write_guide(client)
        with pytest.raises(InvalidArgumentError, match="pattern"):
            client.grep(GUIDE, pattern)

    def test_a_long_line_is_cut_around_the_match(self, client: Any) -> None:
        client.write(f"{GUIDE}/long.txt", f"{'ä' * 900_000}needle{'b' * 900_000}\nneedle")
        first, second = client.grep(f"{GUIDE}/long.txt", "needle+").matches
        assert first.content.startswith("…ä")
        assert "needle" in first.content
        assert (len(first.content) < 1_100, second.line, second.content) == (True, 2, "needle")

    def test_glob_finds_names_with_stars_sets_and_alternatives(self, client: Any) -> None:
        write_guide(client)
        client.create_session("chat")

        def relative(pattern: str, uri: str = GUIDE) -> list[str]:
            matches = client.glob(pattern, uri).matches
            assert len(set(matches)) == len(matches)
            return [each.removeprefix(f"{uri}/") for each in matches]

        assert relative("*") == ["intro.md", "part 1"]
        assert relative("**") == ["intro.md", "part 1", "part 1/50%25.txt", "part 1/中文.md"]
        assert relative("**/*.md") == ["intro.md", "part 1/中文.md"]
        assert relative("*/??.md") == ["part 1/中文.md"]
        assert relative("**/[!a-z]*.{md,txt}") == ["part 1/50%25.txt", "part 1/中文.md"]
        assert relative("part 1/50[%].txt") == ["part 1/50%25.txt"]
        assert relative(".*/*") == [".hidden/x.md"]
        assert relative("{intro,x{y,z}}.md") == ["intro.md"]
        assert relative("[") == relative("a.b") == relative("INTRO.md") == []
        assert client.glob(f"{GUIDE}/*.md").matches == [f"{GUIDE}/intro.md"]
        assert client.glob("viking://resources/none/*").matches == []
        assert "viking://user/alice/sessions/chat/messages.jsonl" in client.glob("**/messages.jsonl").matches
        (entry,) = client.glob("*.md", GUIDE, extra_fields=["size"]).matches
        assert (entry.uri, entry.rel_path, entry.size) == (f"{GUIDE}/intro.md", "intro.md", 38)
        assert client.glob("**", node_limit=2).truncated
        for pattern in ("", "[z-a]"):
            with pytest.raises(InvalidArgumentError):
                client.glob(pattern, GUIDE)
        with pytest.raises(NotFoundError):
            client.glob("*", f"{GUIDE}/missing")
        with pytest.raises(FailedPreconditionError):
            client.glob("*", f"{GUIDE}/intro.md")

    def test_tags_are_replaced_appended_cleared_and_searched(self, client: Any) -> None:
        write_guide(client)
        result = client.set_tags(GUIDE, "team=ops, draft,", recursive=True)
        assert (result.success_count, result.skipped_count, result.tags) == (7, 0, ["team=ops", "draft"])
        again = client.set_tags(f"{GUIDE}/intro.md", ["draft", "new"], mode="append")
        assert (again.updated_uris, again.tags_updated) == ([f"{GUIDE}/intro.md"], True)
        attributes = client.attributes(f"{GUIDE}/intro.md")
        assert (attributes.context_type, attributes.attrs.tags) == ("resource", ["team=ops", "draft", "new"])
        assert client.glob("**", tags=["new", "draft"]).matches == [f"{GUIDE}/intro.md"]
        assert client.grep(GUIDE, "(?i)staging", tags="new", include_tags=True).matches[0].tags[-1] == "new"
        assert client.set_tags(f"{GUIDE}/intro.md", mode="clear").tags_updated
        assert client.set_tags(f"{GUIDE}/intro.md", mode="clear").skipped_count == 1
        assert client.attributes(f"{GUIDE}/intro.md").attrs.tags == []
        for tags in (["x" * 201], [f"t{number}" for number in range(101)]):
            with pytest.raises(InvalidArgumentError, match="tags"):
                client.set_tags(GUIDE, tags)
        with pytest.raises(NotFoundError):
            client.set_tags(f"{GUIDE}/missing", "x")

    def test_relations_follow_a_move_and_show_only_what_exists(self, client: Any) -> None:
        write_guide(client)
        client.create_session("chat")
        intro, chinese = f"{GUIDE}/intro.md", f"{GUIDE}/part 1/中文.md"
        linked = client.link(intro, ["viking://session/chat", chinese], reason="see there")
        assert linked.to_uris == ["viking://user/alice/sessions/chat", chinese]
        client.link("viking://session/chat", GUIDE)
        assert [(each.uri, each.reason) for each in client.relations(intro)] == [
            (chinese, "see there"),
            ("viking://user/alice/sessions/chat", "see there"),
        ]
        shown = json.loads(client.read(f"{GUIDE}/.relations.json"))["relations"]
        assert [each["uri"] for each in shown[intro]] == [chinese, "viking://user/alice/sessions/chat"]
        client.mv(f"{GUIDE}/part 1", "viking://resources/elsewhere")
        client.delete_session("chat")
        assert [each.uri for each in client.relations(intro)] == ["viking://resources/elsewhere/中文.md"]
        client.unlink(intro, "viking://resources/elsewhere/中文.md")
        assert client.relations(intro) == []
        with pytest.raises(NotFoundError):
            client.unlink(intro, "viking://resources/elsewhere/中文.md")
        with pytest.raises(NotFoundError):
            client.link(intro, "viking://resources/missing")

    def test_relations_never_show_what_the_caller_may_not_read(
        self, client: Any, connect_as: Callable[..., Any]
    ) -> None:
        write_guide(client)
        bob = connect_as("acme", "bob", "user")
        intro, own = f"{GUIDE}/intro.md", "viking://user/alice/resources/own.py"
        client.link(intro, own)
        assert [each.uri for each in client.relations(intro)] == [own]
        assert bob.relations(intro) == []
        with pytest.raises((NotFoundError, PermissionDeniedError)):
            bob.link(intro, own)
        with pytest.raises((NotFoundError, PermissionDeniedError)):
            bob.link(own, intro)
        with pytest.raises(NotFoundError):
            bob.unlink(intro, own)
        assert "own.py" not in json.dumps([each.uri for each in bob.ls(GUIDE, show_all_hidden=True)])
        assert ".relations.json" not in [each.name for each in bob.ls(GUIDE, show_all_hidden=True)]
        client.rm(own)
        client.unlink(intro, own)
        with pytest.raises(NotFoundError):
            client.unlink(intro, own)
