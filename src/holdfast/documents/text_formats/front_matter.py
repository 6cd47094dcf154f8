"""Front matter: the lines between `---` at the beginning of a Markdown file, with names and values."""

from typing import NamedTuple

MAX_CHARS = 65_536
"""The longest front matter that is recognised."""


class FrontMatter(NamedTuple):
    values: dict[str, str | list[str]]
    end: int
    """Where the text after it begins, or 0 if there is none."""


def read_front_matter(text: str) -> FrontMatter:
    r"""Read the front matter of a text. Values are texts or lists of texts; nested ones are left out.

    >>> read_front_matter("---\nname: search\ntags: [a, b]\n---\n# Search")
    FrontMatter(values={'name': 'search', 'tags': ['a', 'b']}, end=34)
    """
    start = 1 if text.startswith("\N{ZERO WIDTH NO-BREAK SPACE}") else 0
    lines = text[start : start + MAX_CHARS].split("\n")
    if lines[0].rstrip() != "---":
        return FrontMatter({}, 0)
    at = start + len(lines[0]) + 1
    for number, line in enumerate(lines[1:], 1):
        at += len(line) + 1
        if line.rstrip() in {"---", "..."}:
            return FrontMatter(_read_values(lines[1:number]), min(at, len(text)))
    return FrontMatter({}, 0)


def _read_values(lines: list[str]) -> dict[str, str | list[str]]:
    values: dict[str, str | list[str]] = {}
    name, pieces, mark = "", [], ""
    for line in [*lines, "end:"]:
        is_name = ":" in line and line[:1] not in {"", " ", "\t", "#", "-"}
        if not is_name:
            pieces.append(line)
            continue
        if name:
            values[name] = _value(mark, pieces)
        name, _, mark = line.partition(":")
        name, mark, pieces = name.strip().strip("\"'"), mark.strip(), []
    return values


def _value(mark: str, pieces: list[str]) -> str | list[str]:
    """Return a value. `mark` is what follows the name on its line, `pieces` are the lines after that."""
    lines = [piece.strip() for piece in pieces if piece.strip() and not piece.lstrip().startswith("#")]
    if mark.startswith("[") and mark.endswith("]"):
        return [item for piece in mark[1:-1].split(",") if (item := _unquote(piece))]
    if mark[:1] in {"|", ">"} and len(mark) <= len(">-"):
        return ("\n" if mark[0] == "|" else " ").join(lines)
    if not mark and lines and all(line.startswith("-") for line in lines):
        return [_unquote(line[1:]) for line in lines]
    return _unquote(" ".join([mark, *lines]) if mark else "")


def _unquote(text: str) -> str:
    text = text.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text
