"""Packs hits into one text for a prompt, within a token budget, with a receipt of what was left out."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from holdfast.model.search import ContextType, RecalledEntry
from holdfast.search.results.excerpts import excerpt
from holdfast.search.results.recalled import CLOSING, OPENING, escape

MAX_SHARE = 3
"""If not everything fits, an entry longer than a third of the budget is shortened to that."""
MIN_TOKENS = 40
"""An entry is not shortened to less."""
_CHARS_PER_TOKEN = 4
_MAX_CHARS_PER_TOKEN = 20
"""No text has so many characters per token, except runs of spaces and the like."""
_ATTEMPTS = 8


class Recallable(NamedTuple):
    """Something to recall, with where and when it was said."""

    uri: str
    category: ContextType
    score: float
    created_at: datetime
    order: tuple[str, int]
    """The session and the number in it: the order of what has the same time."""
    speaker: str
    text: str
    origin: Literal["found", "around"]
    is_shortened: bool = False
    """Whether the text is only a part of it already."""


class ContextBlock(NamedTuple):
    entries: list[RecalledEntry]
    """Oldest first."""
    rendered: str
    used_tokens: int
    deduped: int
    left_out: list[str]
    """The addresses of hits that did not fit, best first."""


class _Chosen(NamedTuple):
    item: Recallable
    text: str
    detail: Literal["full", "shortened"]


def pack(
    items: Sequence[Recallable], max_tokens: int, words: Sequence[str], count: Callable[[str], int]
) -> ContextBlock:
    """Pack items, best first, into a text of at most `max_tokens`. What was found comes before what is around it."""
    found, deduped = _without_duplicates([item for item in items if item.origin == "found"])
    around, _ = _without_duplicates([item for item in items if item.origin == "around"], found)
    chosen: list[_Chosen] = []
    left = max_tokens - count(f"{OPENING}\n{CLOSING}")
    share = left if _fits(found, left, count) else max(MIN_TOKENS, left // MAX_SHARE)
    for item in found:
        choice = _fit(item, min(share, left), words, count)
        if choice is not None:
            chosen.append(choice)
            left -= count(_render(choice))
    for item in around:
        choice = _whole(item, left, count)
        if choice is not None:
            chosen.append(choice)
            left -= count(_render(choice))
    return _block(chosen, found, max_tokens, deduped, count)


def _without_duplicates(items: Sequence[Recallable], known: Sequence[Recallable] = ()) -> tuple[list[Recallable], int]:
    """Return the first of items with the same address or text, without empty ones, and how many were dropped."""
    seen = {key for item in known for key in (item.uri, _key(item.text))}
    kept: list[Recallable] = []
    for item in items:
        keys = {item.uri, _key(item.text)}
        if item.text.strip() and not keys & seen:
            kept.append(item)
        seen |= keys
    return kept, len(items) - len(kept)


def _key(text: str) -> str:
    return " ".join(text.casefold().split())


def _fits(items: Sequence[Recallable], tokens: int, count: Callable[[str], int]) -> bool:
    """Return whether all items fit. It stops counting where they do not."""
    for item in items:
        choice = _whole(item, tokens, count)
        if choice is None:
            return False
        tokens -= count(_render(choice))
    return True


def _whole(item: Recallable, tokens: int, count: Callable[[str], int]) -> _Chosen | None:
    """Return an item with its text, or None if it does not fit. The tokens of a far too long text are not counted."""
    if len(item.text) > tokens * _MAX_CHARS_PER_TOKEN:
        return None
    choice = _Chosen(item, item.text, "shortened" if item.is_shortened else "full")
    return choice if count(_render(choice)) <= tokens else None


def _fit(item: Recallable, tokens: int, words: Sequence[str], count: Callable[[str], int]) -> _Chosen | None:
    """Return an item whole, or shortened to a number of tokens, or None if even that does not fit."""
    whole = _whole(item, tokens, count)
    if whole is not None or tokens < MIN_TOKENS:
        return whole
    chars = tokens * _CHARS_PER_TOKEN
    for _ in range(_ATTEMPTS):
        choice = _Chosen(item, excerpt(item.text, words, chars), "shortened")
        if count(_render(choice)) <= tokens:
            return choice
        chars = chars * 2 // 3
    return None


def _block(
    chosen: list[_Chosen],
    found: Sequence[Recallable],
    max_tokens: int,
    deduped: int,
    count: Callable[[str], int],
) -> ContextBlock:
    """Render what was chosen. The tokens of the whole may be more than those of its parts: then the last one goes."""
    while True:
        rendered = _render_all(chosen)
        used = count(rendered)
        if used <= max_tokens or not chosen:
            break
        chosen = chosen[:-1]
    returned = {choice.item.uri for choice in chosen}
    entries = [
        RecalledEntry(
            uri=choice.item.uri,
            category=choice.item.category,
            score=choice.item.score,
            detail=choice.detail,
            text=choice.text,
            origin=choice.item.origin,
            created_at=choice.item.created_at,
        )
        for choice in _in_order(chosen)
    ]
    return ContextBlock(entries, rendered, used, deduped, [item.uri for item in found if item.uri not in returned])


def _in_order(chosen: Sequence[_Chosen]) -> list[_Chosen]:
    return sorted(chosen, key=lambda choice: (choice.item.created_at, choice.item.order))


def _render_all(chosen: Sequence[_Chosen]) -> str:
    if not chosen:
        return ""
    return "\n".join([OPENING, *map(_render, _in_order(chosen)), CLOSING])


def _render(choice: _Chosen) -> str:
    """Render an entry. Its text cannot close the block or open another entry."""
    item = choice.item
    time = item.created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    attributes = f'uri="{_attribute(item.uri)}" type="{item.category}" time="{time}" score="{item.score:.2f}"'
    speaker = f"{_attribute(item.speaker)}: " if item.speaker else ""
    detail = "" if choice.detail == "full" else ' detail="shortened"'
    return f"<memory {attributes}{detail}>\n{speaker}{escape(choice.text.strip())}\n</memory>"


def _attribute(value: str) -> str:
    """Return a value for one line, without quotes and brackets."""
    return escape(" ".join(value.split())).replace('"', "'")
