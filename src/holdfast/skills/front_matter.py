"""The front matter of SKILL.md: the lines between two `---` at the beginning of the file."""

from typing import NamedTuple

from holdfast.skills.simple_yaml import Mapping, YamlError, parse_mapping

MAX_CHARS = 65_536
"""The longest front matter."""
_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
_END_LINES = ("---", "...")


class FrontMatter(NamedTuple):
    values: Mapping
    notes: list[str]
    """What other readers of YAML may refuse."""
    body: str
    """The text after it."""


def split(text: str) -> FrontMatter:
    r"""Split a text into its front matter and its body. Raises `YamlError` if it has none, or an invalid one.

    >>> split("---\nname: search\n---\n# Search").body
    '# Search'
    """
    start = len(_BOM) if text.startswith(_BOM) else 0
    lines = text[start : start + MAX_CHARS].split("\n")
    if lines[0].rstrip() != "---":
        raise YamlError("there is no front matter; begin with a line ---, then name and description, then a line ---")
    at = start + len(lines[0]) + 1
    for number, line in enumerate(lines[1:], 1):
        at += len(line) + 1
        if line.rstrip() in _END_LINES:
            values, notes = parse_mapping([each.rstrip() for each in lines[1:number]])
            return FrontMatter(values, notes, text[at:])
    if len(text) - start > MAX_CHARS:
        raise YamlError(f"the front matter is longer than {MAX_CHARS:,} characters; move text to the body, below ---")
    raise YamlError("the front matter has no end; add a line --- after it")


def has_front_matter(text: str) -> bool:
    """Whether a text begins as front matter does."""
    return text.removeprefix(_BOM)[:MAX_CHARS].split("\n", 1)[0].rstrip() == "---"
