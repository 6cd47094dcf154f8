"""SKILL.md as it is published is read; hostile front matter is refused in bounded time."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.skills.conversion import to_skill_text
from holdfast.skills.definition import name_problem, read_definition
from holdfast.skills.front_matter import split
from holdfast.skills.simple_yaml import YamlError
from holdfast.skills.validation import validate
from holdfast.testing.timing.growth import growth_problem

FOLDED = """description: >-
  Creates slides.
  Use for decks.

  Not for documents:
    - lists stay
  end
"""
LITERAL = """description: |
  First line
    indented

  last line
"""
PLAIN = """description: Extracts text from PDFs   # a comment
  and fills forms

  in two paragraphs
"""
QUOTED = """description: "Says \\"hi\\" \\u00e9\\n
  on two lines"
"""
SINGLE = """description: 'It''s: fine # here'
"""
COLON = """description: Use when: someone asks
"""


@pytest.mark.parametrize(
    ("field", "description"),
    [
        (FOLDED, "Creates slides. Use for decks.\nNot for documents:\n  - lists stay\nend"),
        (LITERAL, "First line\n  indented\n\nlast line"),
        (PLAIN, "Extracts text from PDFs and fills forms\nin two paragraphs"),
        (QUOTED, 'Says "hi" é\n on two lines'),
        (SINGLE, "It's: fine # here"),
        (COLON, "Use when: someone asks"),
        ("description:\n", ""),
        ("description: ~\n", ""),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_descriptions_of_all_kinds_are_read(field: str, description: str, line_end: str, begin: str) -> None:
    text = f"---\nname: slides\n{field}---\n\n# Slides\n---\nmore\n".replace("\n", line_end)
    skill = read_definition(begin + text)
    assert (skill.name, skill.description) == ("slides", description)
    assert skill.body.replace("\r\n", "\n") == "\n# Slides\n---\nmore\n"


def test_lists_and_mappings_are_read_in_every_form() -> None:
    text = """---
name: all
license: Apache-2.0
metadata:
  author: example-org
  version: "1.0"
  nested: {a: [1, "b, c"], d: e}
tags:
- one
- "two"
allowed-tools:
  - Read
  - Bash(npm run *)
other: [
  a,   # comment
  b
]
steps:
  - name: first
    run: x
  - - deep
---
"""
    values = split(text).values
    assert values["metadata"]["nested"] == {"a": ["1", "b, c"], "d": "e"}
    assert (values["tags"], values["other"]) == (["one", "two"], ["a", "b"])
    assert values["steps"] == [{"name": "first", "run": "x"}, ["deep"]]
    assert read_definition(text).allowed_tools == ["Read", "Bash(npm run *)"]
    assert read_definition("---\nname: x\nallowed-tools: Read, Bash(git add:*) Grep\n---").allowed_tools == [
        "Read",
        "Bash(git add:*)",
        "Grep",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no front matter"),
        ("# Title\n---\nname: x\n---\n", "no front matter"),
        ("---\nname: x\n", "has no end"),
        ("---\nname: x\nname: y\n---\n", "line 3 has the name 'name' for the second time"),
        ("---\n\tname: x\n---\n", "line 2 is indented by a tab"),
        ("---\n- a\n---\n", "line 2 is not `name: value`"),
        ("---\njust text\n---\n", "line 2 is not `name: value`"),
        ("---\na: &x b\nc: *x\n---\n", "line 2 has a value that begins with &, an anchor in YAML"),
        ("---\na: !!python/object:os.system x\n---\n", "a tag"),
        ("---\na: [*x]\n---\n", "an anchor, an alias or a tag"),
        ("---\na: [b\n---\n", "line 2 is never closed"),
        ('---\na: "b\n---\n', 'has no closing "'),
        ('---\na: "\\q"\n---\n', "unknown escape"),
        ('---\na: "b" c\n---\n', "goes on after the closing quote"),
        ("---\na: b\n  c: d\n e: f\n---\n", None),
        ("---\n" + "".join(f"{' ' * depth}a:\n" for depth in range(40)) + "---\n", "nested deeper than 16"),
        ("---\na: " + "[" * 10_000 + "\n---\n", "never closed"),
        ("---\na: " + "[" * 100 + "]" * 100 + "\n---\n", "nested too deep"),
        ("---\n" + "- " * 1_000 + "a\n---\n", "nested deeper than 16"),
        ("---\ndescription: " + "x" * 10_000_000 + "\n---\n", "longer than 65,536"),
    ],
)
def test_other_front_matter_is_refused_with_its_line(text: str, problem: str | None) -> None:
    started = time.process_time()
    if problem is None:
        split(text)
    else:
        with pytest.raises(YamlError, match=problem.replace("[", r"\[")):
            split(text)
    assert time.process_time() - started < 0.5


SHAPES: dict[str, Callable[[int], str]] = {
    "an alias bomb": lambda n: "a: &a [x]\n" + "".join(f"a{at}: [*a, *a]\n" for at in range(n // 16)),
    "quotes": lambda n: 'a: "' + '\\"' * (n // 2),
    "escapes": lambda n: 'a: "' + "\\\\" * (n // 2) + '"',
    "single quotes": lambda n: "a: '" + "''" * (n // 2),
    "keys": lambda n: "".join(f"k{at}: v\n" for at in range(n // 9)),
    "items": lambda n: "a:\n" + "- - b\n" * (n // 6),
    "colons": lambda n: "a: " + ": " * (n // 2),
    "empty lines": lambda n: "a: |\n" + "\n" * n,
    "folded": lambda n: "a: >\n" + "  b\n\n" * (n // 5),
    "open brackets": lambda n: "a: " + "[x," * (n // 3),
    "open lines": lambda n: "a: [\n" + "'b\n" * (n // 3),
    "comments": lambda n: "# a\n" * (n // 4),
    "spaces": lambda n: "a:" + " " * n + "b",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_time_of_reading_grows_with_the_text(shape: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        text = f"---\n{SHAPES[shape](size)}\n---\n"
        return lambda: validate(text, strict=True)

    assert growth_problem(prepare, 15_000, floor_seconds=0.05) is None


VALUES = st.recursive(st.text(max_size=20), lambda inner: st.lists(inner, max_size=3), max_leaves=6)


@given(
    name=st.text(min_size=1, max_size=40),
    description=st.text(max_size=300),
    tags=st.lists(st.text(min_size=1, max_size=20), max_size=4),
    metadata=st.dictionaries(st.text(max_size=10), VALUES, max_size=3),
    content=st.text(max_size=200),
)
def test_what_an_object_says_is_what_its_skill_md_says(
    name: str, description: str, tags: list[str], metadata: dict[str, Any], content: str
) -> None:
    given_object = {"name": name, "description": description, "tags": tags, "metadata": metadata, "content": content}
    if name_problem(name.strip()):
        return
    front = split(to_skill_text({**given_object, "content": f"# {content}"})).values
    assert front["name"] == name.strip()
    clean = description.replace("\0", "\ufffd")
    assert (front.get("description") or "") == clean
    assert front.get("tags", []) == [tag.replace("\0", "\ufffd") for tag in tags]
    if metadata and "\\x00" not in repr(metadata):  # NUL is refused before
        assert front["metadata"] == metadata


def test_validation_names_what_the_specification_demands() -> None:
    text = "---\nname: My_Skill\ncompatibility: " + "x" * 501 + "\nhooks: a\n---\n" + "line\n" * 501
    lenient, strict = validate(text), validate(text, strict=True, folder_name="other")
    assert (lenient.valid, strict.valid) == (True, False)
    assert {problem.rule for problem in strict.errors} == {
        "name_format",
        "name_matches_folder",
        "description",
        "compatibility_length",
    }
    assert {problem.rule for problem in strict.warnings} == {"body_length", "unknown_field"}
    assert lenient.body_lines == 501
    invalid: list[Any] = [{}, [], {"name": " "}, {"name": "../x"}, {"name": "x", "content": "---\nbroken"}]
    assert not any(validate(bad).valid for bad in invalid)
