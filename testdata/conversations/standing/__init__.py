"""Conversations with standing rules and preferences, and the clauses that a summary must keep.

A conversation is a plain text file: `=== role` (or `=== tool name`) before each message, and after the last message
the clauses. `keep:` must be kept word for word. `may:` can be read as a rule or not, and is not counted. `gone:` was
withdrawn or replaced later. Everything else that is kept is a false positive.
"""

from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from conversations.script import Turn, assistant, tool

__all__ = ["STANDING", "WRITTEN_LATER", "StandingConversation", "parse"]


@dataclass(frozen=True)
class StandingConversation:
    """A conversation of one user with an assistant, and the standing rules that the user states in it."""

    name: str
    language: str
    messages: list[Turn]
    """The arguments of `add_message` for each message."""
    keep: list[str]
    may: list[str]
    gone: list[str]


def parse(name: str, text: str) -> StandingConversation:
    header, *blocks = text.split("\n=== ")
    last, _, clauses = blocks[-1].partition("\n\nkeep: ")
    expected: dict[str, list[str]] = {"keep": [], "may": [], "gone": []}
    for line in f"keep: {clauses}".splitlines():
        kind, _, clause = line.partition(": ")
        expected[kind].append(clause)
    language = next(line for line in header.splitlines() if line.startswith("language: ")).partition(": ")[2]
    return StandingConversation(name, language, [_turn(block) for block in (*blocks[:-1], last)], **expected)


def _turn(block: str) -> Turn:
    heading, _, text = block.partition("\n")
    role, _, name = heading.partition(" ")
    text = text.strip("\n")
    return assistant("", tool(name, {}, text)) if role == "tool" else {"role": role, "content": text}


def _read(folder: Traversable) -> list[StandingConversation]:
    sources = sorted((file for file in folder.iterdir() if file.name.endswith(".txt")), key=lambda file: file.name)
    return [parse(file.name.removesuffix(".txt"), file.read_text(encoding="utf-8")) for file in sources]


STANDING = _read(files(__name__))
WRITTEN_LATER = _read(files(__name__) / "later")
"""Written after the patterns. At first the patterns kept only 9 and then 6 of 20 rules; they were then improved."""
