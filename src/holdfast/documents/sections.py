"""Parts from sections: long sections are split at paragraphs, and short neighbours are merged."""

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.documents.parsed import Section
from holdfast.model.tree.files import FilePart
from holdfast.text.sentences import split_sentences, to_single_line
from holdfast.text.shortening import shorten

MAX_PART_CHARS = 3_500
"""A longer section is split."""
SPLIT_CHARS = 3_000
"""The longest piece of a section that is split."""
MERGED_CHARS = 2_000
"""The longest part that is made of several sections."""
SMALL_CHARS = 300
"""A section shorter than this is merged with its neighbour."""
MAX_TITLE_CHARS = 160
MAX_ABSTRACT_CHARS = 160
_READ_CHARS = 1_200
"""How many characters of a section are read for its abstract."""
_MIN_SENTENCE_CHARS = 40
SEPARATOR = " > "


def build_parts(text: str, sections: Sequence[Section], *, merges: bool = True) -> list[FilePart]:
    """Return the parts of a text."""
    pieces = [piece for section in sections for piece in _split(text, section) if not _is_blank(text, piece)]
    groups: list[list[Section]] = []
    for number, piece in enumerate(pieces):
        following = pieces[number + 1].path if number + 1 < len(pieces) else ()
        if merges and groups and _can_merge(groups[-1], piece, following):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return [_build_part(text, group) for group in groups]


def sections_from_starts(text: str, starts: Sequence[tuple[int, tuple[str, ...], int]]) -> list[Section]:
    """Return sections that each end where the next one begins. Each start has a position, a path and a body."""
    if not starts:
        return [Section((), 0, len(text))]
    ends = [start for start, _, _ in starts[1:]] + [len(text)]
    found = [Section(path, start, end, None, body) for (start, path, body), end in zip(starts, ends, strict=True)]
    first = starts[0][0]
    return [Section((), 0, first), *found] if first else found


def _split(text: str, section: Section) -> Iterator[Section]:
    """Split a long section at paragraphs, or else at lines, sentences, words, or at the limit."""
    if section.end - section.start <= MAX_PART_CHARS:
        yield section
        return
    borders = [section.start]
    while section.end - borders[-1] > MAX_PART_CHARS:
        borders.append(_border(text, borders[-1]))
    borders.append(section.end)
    for number, start in enumerate(borders[:-1]):
        path = (*section.path[:-1], f"{section.path[-1]} ({number + 1} of {len(borders) - 1})") if section.path else ()
        yield msgspec.structs.replace(
            section,
            path=path,
            start=start,
            end=borders[number + 1],
            body=section.body if number == 0 else start,
            abstract=section.abstract if number == 0 else "",
        )


def _border(text: str, start: int) -> int:
    for mark in ("\n\n", "\n", ". ", " "):
        found = text.rfind(mark, start + SPLIT_CHARS // 3, start + SPLIT_CHARS)
        if found >= 0:
            return found + len(mark)
    return start + SPLIT_CHARS


def _is_blank(text: str, section: Section) -> bool:
    return section.start == section.end or text[section.start : section.end].isspace()


def _can_merge(group: list[Section], section: Section, following: tuple[str, ...]) -> bool:
    """Whether a section becomes a part of a group. The head of the section after it goes with that section."""
    first = group[0]
    chars = group[-1].end - first.start
    if chars >= SMALL_CHARS and section.path and following[: len(section.path)] == section.path != following:
        return False
    is_small = min(chars, section.end - section.start) < SMALL_CHARS
    return is_small and section.end - first.start <= MERGED_CHARS and first.page == section.page


def _build_part(text: str, group: list[Section]) -> FilePart:
    first, last = group[0], group[-1]
    abstracts = dict.fromkeys(abstract for section in group[:6] if (abstract := _section_abstract(text, section)))
    abstract = shorten(" ".join(abstracts)[: 4 * MAX_ABSTRACT_CHARS], MAX_ABSTRACT_CHARS)
    return FilePart(_title([section.path for section in group]), first.page, first.start, last.end, abstract)


def _section_abstract(text: str, section: Section) -> str:
    if section.abstract:
        return to_single_line(section.abstract[:_READ_CHARS])
    start = section.body if section.start <= section.body < section.end else section.start
    return first_sentences(text[start : min(section.end, start + _READ_CHARS)])


def first_sentences(text: str, chars: int = MAX_ABSTRACT_CHARS) -> str:
    r"""Return the first sentences of a text on one line. Code is used only if there is nothing else.

    >>> first_sentences("# Pods\n\nRestart them at night. Ask the team first.", 30)
    'Pods Restart them at night.'
    """
    text = text[:_READ_CHARS]
    without_tables = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("|"))
    pieces = split_sentences(without_tables) or split_sentences(text)
    prose = [piece.text for piece in pieces if piece.origin != "code"] or [piece.text for piece in pieces]
    line = ""
    for sentence in prose:
        if line and (len(line) >= _MIN_SENTENCE_CHARS or len(line) + len(sentence) > chars):
            break
        line = f"{line} {sentence}".strip()
    return shorten(line, chars)


def _title(paths: list[tuple[str, ...]]) -> str:
    """Return one title for sections: the headings that they share, and their own names.

    >>> _title([("Install", "Linux"), ("Install", "macOS")]), _title([("Install",), ("Install", "Linux")])
    ('Install > Linux, macOS', 'Install: Linux')
    """
    named = [path for path in paths if path]
    if not named:
        return ""
    shared = named[0]
    for path in named[1:]:
        while path[: len(shared)] != shared:
            shared = shared[:-1]
    if len(named) == 1 or all(path == shared for path in named):
        return _shorten_title(SEPARATOR.join(shared))
    own_names = dict.fromkeys(SEPARATOR.join(path[len(shared) :]) for path in named if len(path) > len(shared))
    mark = ": " if shared in named else SEPARATOR
    return _shorten_title((SEPARATOR.join(shared) + mark if shared else "") + ", ".join(own_names))


def _shorten_title(title: str) -> str:
    return shorten(to_single_line(title[: 4 * MAX_TITLE_CHARS]), MAX_TITLE_CHARS)
