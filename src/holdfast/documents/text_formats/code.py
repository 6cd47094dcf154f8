"""Source code: sections by classes and functions, found by rules for lines.

The rules take linear time on any text, and also read code with syntax errors or of another version. A parser such as
`ast` does not, and prints warnings about the code.
"""

import re
from itertools import pairwise
from typing import NamedTuple

from holdfast.documents.lines import MAX_SECTIONS, iter_lines
from holdfast.documents.parsed import Extracted, Section

MAX_LINE_CHARS = 300
_TAB_WIDTH = 4
_MAX_NESTED_INDENT = 8
"""Deeper declarations stay in the section around them."""

_PYTHON = re.compile(r"(?:async[ \t]++)?(class|def)[ \t]++(\w+)")
_MODIFIERS = (
    "abstract|async|const|data|default|export|extern|final|inline|internal|open|override|partial|private|protected"
    "|pub(?:\\(\\w+\\))?|public|sealed|static|unsafe|virtual"
)
_KEYWORD = re.compile(
    rf"(?:(?:{_MODIFIERS})[ \t]++)*+"
    r"(class|interface|enum|struct|trait|impl|type|module|namespace|object|record|protocol|extension|union"
    r"|function\*?|func|fn|fun|def|sub|defmodule|defp?|macro_rules!)[ \t]++"
    r"(?:\([^()]{0,80}\)[ \t]*+)?(?:<[^<>]{0,80}>[ \t]*+)?([\w:$.]++)"
)
_ASSIGNED = re.compile(
    r"(?:export[ \t]++)?(?:const|let|var)[ \t]++(\w+)[ \t]*+=[ \t]*+(?:async\b[ \t]*+)?(?:function\b|\()"
)
_CONTAINERS = frozenset(
    [
        "class",
        "interface",
        "enum",
        "struct",
        "trait",
        "impl",
        "module",
        "namespace",
        "object",
        "record",
        "protocol",
        "extension",
        "union",
        "defmodule",
    ]
)
_STATEMENTS = frozenset(
    [
        "if",
        "for",
        "while",
        "switch",
        "return",
        "else",
        "case",
        "do",
        "try",
        "catch",
        "using",
        "new",
        "throw",
        "assert",
        "sizeof",
    ]
)
_NAME = re.compile(r"[\w:~$]{1,80}")
_ATTACHED = ("@", "#", "//", "/*", "*", "--", ";;", "%%")
"""A line that begins with one of these belongs to the declaration after it."""
_QUOTES = ('"""', "'''")


class Declaration(NamedTuple):
    kind: str
    name: str


class _Open(NamedTuple):
    indent: int
    name: str
    is_container: bool


def parse_code(text: str, extension: str) -> Extracted:
    """Split source code by classes and functions. Comments and decorators belong to what follows them."""
    is_python = extension in {"py", "pyi", "pyw"}
    sections: list[Section] = []
    opened: list[_Open] = []
    attached_at = 0
    is_attached = False
    closing = ""  # what ends the string or comment that the line is in
    previous = ""
    names: list[str] = []
    for at, line in iter_lines(text):
        if len(sections) >= MAX_SECTIONS:
            break
        short = line[:MAX_LINE_CHARS]
        stripped = short.lstrip()
        found = None if closing else _declaration(short, stripped, is_python=is_python)
        if found is not None and (path := _open(opened, found, _indent(short))):
            start = attached_at if is_attached else at
            following = _line_at(text, at + len(line) + 1)
            sections.append(Section(path, start, len(text), None, at, _abstract(short, previous, following)))
            names.append(found.name)
        closing = _closing(closing, line, is_python=is_python)
        attaches = stripped.startswith(_ATTACHED) and not closing
        if attaches and not is_attached:
            attached_at = at
        is_attached, previous = attaches, short
    head = sections[0].start if sections else len(text)
    tiled = [_until(section, following.start) for section, following in pairwise(sections)]
    described = first_comment(text[:head])
    tiled = [Section((), 0, head, None, -1, described), *tiled, *sections[-1:]]
    about = described or (f"Source code with {', '.join(dict.fromkeys(names[:12]))}." if names else "")
    return Extracted(text, tiled, "", {"description": about} if about else {})


def _until(section: Section, end: int) -> Section:
    return Section(section.path, section.start, end, None, section.body, section.abstract)


def _indent(line: str) -> int:
    return sum(_TAB_WIDTH if mark == "\t" else 1 for mark in line[: len(line) - len(line.lstrip())])


def _open(opened: list[_Open], found: Declaration, indent: int) -> tuple[str, ...]:
    """Return the path of a declaration, or nothing if it is inside a function. `opened` is what is around it."""
    while opened and opened[-1].indent >= indent:
        opened.pop()
    if indent > _MAX_NESTED_INDENT or (indent and not opened) or not all(each.is_container for each in opened):
        return ()
    opened.append(_Open(indent, found.name, found.kind in _CONTAINERS))
    return tuple(each.name for each in opened)


def _declaration(line: str, stripped: str, *, is_python: bool) -> Declaration | None:
    if is_python:
        match = _PYTHON.match(stripped)
        return Declaration(match[1], match[2]) if match else None
    if match := _KEYWORD.match(stripped):
        return Declaration(match[1], match[2])
    if match := _ASSIGNED.match(stripped):
        return Declaration("function", match[1])
    return _c_function(line, stripped.rstrip())


def _c_function(line: str, stripped: str) -> Declaration | None:
    """Recognise a function by its parentheses: `int main(void) {`, or without the brace at the beginning of a line."""
    head, parenthesis, _ = stripped.partition("(")
    is_complete = stripped.endswith("{") or (line[:1].isalpha() and stripped.endswith(")"))
    if not parenthesis or not is_complete or "=" in head or " " not in head.strip():
        return None
    words = head.split()
    name = words[-1].lstrip("*&")
    if words[0] in _STATEMENTS or name in _STATEMENTS or not words[0][0].isalpha() or not _NAME.fullmatch(name):
        return None
    return Declaration("function", name)


def _closing(closing: str, line: str, *, is_python: bool) -> str:
    """Return what ends the string or comment that is open after a line."""
    if not is_python:
        if closing:
            return "" if closing in line else closing
        return "*/" if line.lstrip().startswith("/*") and "*/" not in line else ""
    if closing:
        return closing if line.count(closing) % 2 == 0 else ""
    return next((quotes for quotes in _QUOTES if line.count(quotes) % 2 == 1), "")


def _line_at(text: str, at: int) -> str:
    return text[at : at + MAX_LINE_CHARS].partition("\n")[0]


def _abstract(line: str, previous: str, following: str) -> str:
    """Return the line of a declaration, and the first line of its description."""
    line = line.strip().rstrip("{").rstrip()
    following = following.strip()
    if not following.startswith(('"', "'", 'r"', "//", "/*", "#")):
        following = previous.strip()
        if not following.startswith(("//", "/*", "*", "# ", "--")):
            return line
    described = following.strip("\"'/*#-! ")
    return f"{line}  {described}" if described else line


def first_comment(head: str) -> str:
    """Return the first line of text in the comment or docstring at the beginning of a file."""
    for line in head[: 8 * MAX_LINE_CHARS].split("\n"):
        stripped = line.strip()
        if stripped.startswith("#!") or not stripped or "coding:" in stripped:
            continue
        if not stripped.startswith(('"', "'", "#", "//", "/*", "*", "--", ";", "%")):
            return ""
        described = stripped.strip("\"'/*#-;%! ")
        is_notice = described.lower().startswith(("copyright", "spdx", "license", "eslint", "ruff"))
        if described and not is_notice:
            return described
    return ""
