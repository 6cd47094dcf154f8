"""JSON: sections by the keys or items at the top, or by the lines of JSON lines."""

import re
from itertools import islice

from holdfast.documents.lines import MAX_SECTIONS, iter_lines
from holdfast.documents.parsed import Extracted, Section

BLOCK_CHARS = 2_000
MAX_SCANNED_CHARS = 8_000_000
"""A longer text is split by lines only."""
MAX_KEY_CHARS = 80
_MARK = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_OPENING = frozenset("[{")
_CLOSING = frozenset("]}")


def parse_json(text: str, extension: str) -> Extracted:
    """Split a JSON text by its keys or items at the top. The text is scanned, not decoded, so any depth is fine."""
    if extension in {"jsonl", "ndjson"}:
        starts = islice(((at, "") for at, line in iter_lines(text) if line.strip()), 4 * MAX_SECTIONS)
        return Extracted(text, _blocks(list(starts), text, "lines"), merges=False)
    if len(text) > MAX_SCANNED_CHARS:
        return Extracted(text, [Section((), 0, len(text))])
    items, notes = _top_items(text)
    keys = [key for _, key in items if key]
    what = "items" if text.lstrip().startswith("[") else "keys"
    about = f"JSON with the keys {', '.join(keys[:12])}." if keys else f"JSON list with {len(items)} items."
    return Extracted(text, _blocks(items, text, what), "", {"description": about} if items else {}, notes, merges=False)


def _top_items(text: str) -> tuple[list[tuple[int, str]], list[str]]:
    """Return where each item at the top begins, with its key in an object."""
    items: list[tuple[int, str]] = []
    depth, is_object = 0, False
    item_at = -1  # where an item at the top begins, if its first character is still to come
    for match in _MARK.finditer(text):
        mark = match[0]
        if (
            depth == 1
            and item_at >= 0
            and len(items) < 4 * MAX_SECTIONS
            and (mark[0] not in "]}," or text[item_at : match.start()].strip())
        ):
            items.append((item_at, mark[1:-1][:MAX_KEY_CHARS] if is_object and mark[0] == '"' else ""))
            item_at = -1
        if mark in _OPENING:
            depth += 1
            if depth == 1:
                is_object, item_at = mark == "{", match.end()
        elif mark in _CLOSING:
            depth -= 1
        elif mark == "," and depth == 1:
            item_at = match.end()
    notes = [] if depth == 0 else ["The brackets of the JSON text do not match. It was read as it is."]
    return items, notes


def _blocks(items: list[tuple[int, str]], text: str, what: str) -> list[Section]:
    """Group items into blocks. An item that is longer than a block has its own."""
    sections: list[Section] = []
    first = 0
    for number in range(1, len(items) + 1):
        start = 0 if first == 0 else items[first][0]
        end = items[number][0] if number < len(items) else len(text)
        following = items[number + 1][0] if number + 1 < len(items) else len(text)
        if number < len(items) and following - start <= BLOCK_CHARS:
            continue
        keys = list(dict.fromkeys(key for _, key in items[first:number] if key))
        title = ", ".join(keys[:20]) if keys else f"{what} {first + 1} to {number}"
        sections.append(Section((title,), start, end, None, -1, f"{title}: {text[start : start + 120].strip()}"))
        first = number
    return sections or [Section((), 0, len(text))]
