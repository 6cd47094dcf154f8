"""The abstract (L0) and the overview (L1) of a file or a folder, without a model."""

from collections.abc import Sequence

import msgspec

from holdfast.documents.parsed import ParsedDocument
from holdfast.documents.sections import SEPARATOR, first_sentences
from holdfast.model.tree.files import FilePart
from holdfast.text.sentences import extract_words, to_single_line
from holdfast.text.shortening import shorten

MAX_ABSTRACT_CHARS = 256
MAX_OVERVIEW_CHARS = 2_000
SMALL_TEXT_CHARS = 400
"""The overview of a shorter text is the text itself."""
_MAX_WISH_CHARS = 400
"""How much of a reason or an instruction is used."""
_ABOUT_CHARS = 220
_MAX_FOCUS_PARTS = 3
_MIN_LINE_CHARS = 24


class FileSummary(msgspec.Struct, frozen=True):
    abstract: str
    """One line (L0)."""
    overview: str
    """Markdown: the title, what it is about, and an outline (L1)."""


class ChildSummary(msgspec.Struct, frozen=True):
    """A file or a folder in a folder."""

    name: str
    is_folder: bool
    abstract: str


def summarise_file(parsed: ParsedDocument, reason: str = "", instruction: str = "") -> FileSummary:
    """Summarise a document. The overview is not longer than the text, and the abstract not longer than the overview.

    A `reason` and an `instruction` come on top of that. The abstract has the reason, the overview has both, and the
    parts that match the instruction come first.
    """
    reason, instruction = _wish(reason), _wish(instruction)
    wishes = [f"Added for: {reason}"] * bool(reason) + [f"Focus: {instruction}"] * bool(instruction)
    about = _about(parsed)
    title = shorten(to_single_line(parsed.title[:1_000]), 120)
    line = about if not title or title.lower() in about.lower() else f"{title}: {about}".removesuffix(": ")
    if len(parsed.text) <= SMALL_TEXT_CHARS:
        return _summary(line if len(line) <= len(parsed.text) else about, parsed.text, reason, wishes)
    limit = min(MAX_OVERVIEW_CHARS, len(parsed.text))
    head = [f"# {title}"] * bool(title) + [about] * bool(about)
    used = sum(len(line) + 2 for line in head)
    entries = [(_label(part, title), part.abstract if part.abstract != about else "") for part in parsed.parts]
    outline = _outline(parsed.parts, entries, limit - used, instruction)
    overview = "\n\n".join([*head, *(["\n".join(outline)] if outline else [])])
    return _summary(line, overview, reason, wishes)


def summarise_folder(name: str, children: Sequence[ChildSummary], reason: str = "") -> FileSummary:
    """Summarise a folder by its children.

    >>> summarise_folder("docs", [ChildSummary("a.md", False, "How to install.")]).abstract
    'docs: 1 file: a.md (How to install.)'
    """
    reason = _wish(reason)
    files = sum(not child.is_folder for child in children)
    counts = " and ".join(
        f"{count} {noun}{'' if count == 1 else 's'}"
        for count, noun in ((files, "file"), (len(children) - files, "folder"))
        if count
    )
    lines: list[str] = []
    left = MAX_OVERVIEW_CHARS
    for child in children:
        mark = "/" if child.is_folder else ""
        line = f"- **{child.name}{mark}**: {shorten(to_single_line(child.abstract[:1_000]), 160)}".removesuffix(": ")
        if len(line) + 1 > left - _MIN_LINE_CHARS:
            lines.append(f"- and {len(children) - len(lines)} more")
            break
        lines.append(line)
        left -= len(line) + 1
    overview = "\n\n".join([f"# {name}", f"{counts or 'Empty'}.", *(["\n".join(lines)] if lines else [])])
    named = ", ".join(
        f"{child.name} ({about})" if (about := shorten(to_single_line(child.abstract[:500]), 70)) else child.name
        for child in children[:12]
    )
    line = f"{name}: {counts or 'empty'}: {named}".removesuffix(": ")
    return _summary(line, overview, reason, [f"Added for: {reason}"] * bool(reason))


def _summary(line: str, overview: str, reason: str, wishes: list[str]) -> FileSummary:
    overview = "\n\n".join([*wishes, overview]) if overview else "\n\n".join(wishes)
    short_reason = shorten(reason, MAX_ABSTRACT_CHARS // 2)
    room = min(MAX_ABSTRACT_CHARS, len(overview)) - (len(short_reason) + 3 if reason else 0)
    line = shorten(line[: 4 * MAX_ABSTRACT_CHARS], max(1, room)) if line else ""
    abstract = f"{line} ({short_reason})" if reason and line else line or short_reason
    return FileSummary(abstract, overview)


def _wish(text: str) -> str:
    return shorten(to_single_line(text[: 4 * _MAX_WISH_CHARS]), _MAX_WISH_CHARS)


def _about(parsed: ParsedDocument) -> str:
    """Return what a document is about, in one line: its own description, or its first sentences."""
    described = parsed.metadata.get("description")
    if isinstance(described, str) and described.strip():
        return shorten(to_single_line(described[: 4 * _ABOUT_CHARS]), _ABOUT_CHARS)
    for part in parsed.parts[:3]:
        about = part.abstract or first_sentences(parsed.text[part.start : part.end], _ABOUT_CHARS)
        if about:
            return about
    return ""


def _outline(parts: Sequence[FilePart], entries: list[tuple[str, str]], chars: int, instruction: str) -> list[str]:
    """Return a line for each part, within a number of characters. Each entry is a label and an abstract."""
    entries = [entry for entry in entries if any(entry)]
    wanted = extract_words(instruction)
    if wanted:
        scores = [len(wanted & extract_words(f"{label} {abstract}")) for label, abstract in entries[:2_000]]
        best = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[:_MAX_FOCUS_PARTS]
        first = [at for at in best if scores[at]]
        entries = [entries[at] for at in first] + [each for at, each in enumerate(entries) if at not in first]
    if sum(len(label) + len(abstract) + 5 for label, abstract in entries) > chars:
        room = chars // max(1, len(entries)) - 5
        entries = [(label, _fitting(abstract, room - len(label))) for label, abstract in entries]
    if sum(len(label) + 3 for label, _ in entries) > chars:
        entries = [(label, "") for label in _chapters(parts)]
    lines: list[str] = []
    for number, (label, abstract) in enumerate(entries):
        line = f"- {label}: {abstract}" if label and abstract else f"- {label or abstract}"
        is_last = number == len(entries) - 1
        if len(line) + 1 > chars - (0 if is_last else _MIN_LINE_CHARS):
            more = f"- and {len(entries) - number} more"
            return [*lines, more] if len(more) <= chars else lines
        lines += [line] if len(line) > len("- ") else []
        chars -= len(line) + 1
    return lines


def _label(part: FilePart, title: str) -> str:
    """Return the title of a part without that of the document, and its page."""
    name = "" if part.title == title else part.title.removeprefix(f"{title}{SEPARATOR}").removeprefix(f"{title}: ")
    page = f"page {part.page}" if part.page is not None else ""
    if not name or not page:
        return name or page.capitalize()
    return name if name.lower().startswith(page) else f"{name} ({page})"


def _fitting(abstract: str, room: int) -> str:
    return shorten(abstract, room) if room >= _MIN_LINE_CHARS else ""


def _chapters(parts: Sequence[FilePart]) -> list[str]:
    """Return the headings at the top, each with the number of its parts."""
    counts: dict[str, int] = {}
    for part in parts:
        name = part.title.partition(SEPARATOR)[0].partition(": ")[0]
        counts[name] = counts.get(name, 0) + 1
    return [f"{name} ({count} parts)" if count > 1 else name for name, count in counts.items() if name]
