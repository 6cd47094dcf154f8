"""The texts of parts of stored files. Of a large file, only the chunks with a part are decoded."""

import codecs
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast import forking
from holdfast.engine.recall.retrieval import DocumentText
from holdfast.model.tree.files import FilePart
from holdfast.store.database import Tx
from holdfast.store.tables.tree import blobs, contents
from holdfast.store.tables.tree.contents import Content

MAX_PART_CHARS = 64 * 1024
"""How much of a part is read. A longer one is shortened."""
ABSTRACT_CHARS = 200
MAX_REMEMBERED = 1_000
"""Of how many texts a process remembers where their chunks begin."""
TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


class _Position(NamedTuple):
    """Where a chunk of a text begins."""

    chars: int
    """How many characters come before it."""
    rest: bytes
    """The beginning of a character that ends in it."""


def read_texts(tx: Tx, content_id: int, numbers: Sequence[int]) -> dict[int, DocumentText]:
    """Read the texts of parts of a content by number; 0 is its overview. What is missing or damaged is left out."""
    content = contents.find(tx, content_id)
    if content is None:
        return {}
    found: dict[int, DocumentText] = {}
    if 0 in numbers:
        found[0] = DocumentText(content.abstract, content.overview or content.abstract)
    wanted = sorted({number for number in numbers if number > 0})
    if not wanted:
        return found
    try:
        parts = content.parts
    except msgspec.MsgspecError:
        return found
    reader = _TextReader(tx, _text_hash(content))
    for number in wanted:
        if number <= len(parts):
            found[number] = _text_of(reader, parts[number - 1])
    return found


def _text_of(reader: "_TextReader", part: FilePart) -> DocumentText:
    text = reader.read(part.start, min(part.end, part.start + MAX_PART_CHARS))
    abstract = part.abstract or " ".join(text[: 2 * ABSTRACT_CHARS].split())[:ABSTRACT_CHARS]
    return DocumentText(abstract, text, part.title or None, part.page)


def _text_hash(content: Content) -> str | None:
    """Return the hash of the text: of what was extracted, or of the file itself."""
    return content.text_blob or (content.blob if content.media_type.startswith(TEXT_TYPES) else None)


class _TextReader:
    """Reads ranges of characters of one text, in order. A chunk is decoded once for all ranges in it."""

    def __init__(self, tx: Tx, digest: str | None) -> None:
        self._tx = tx
        self._digest = digest
        self._decoded: tuple[int, str] | None = None
        self._key = (tx.account, digest or "")
        self._known = _recall_positions(self._key)

    def read(self, start: int, end: int) -> str:
        """Return the characters from `start` on, and before `end`. Less if the text is shorter, or damaged."""
        if self._digest is None:
            return ""
        number = bisect_right([each.chars for each in self._known], start) - 1
        found: list[str] = []
        while (text := self._chunk(number)) is not None:
            first = self._known[number].chars
            if first >= end:
                break
            found.append(text[max(start - first, 0) : end - first])
            number += 1
        return "".join(found)

    def _chunk(self, number: int) -> str | None:
        """Decode a chunk, and remember where the next one begins. None after the last one."""
        if self._decoded is not None and self._decoded[0] == number:
            return self._decoded[1]
        if number >= len(self._known):
            return None
        data = next(blobs.read_chunks(self._tx, self._digest or "", number), None)
        if data is None:
            return None
        position = self._known[number]
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(position.rest + data, final=len(data) < blobs.CHUNK_BYTES)
        if number + 1 == len(self._known):
            self._known = [*self._known, _Position(position.chars + len(text), decoder.getstate()[0])]
            _remember_positions(self._key, self._known)
        self._decoded = number, text
        return text


_positions: OrderedDict[tuple[str, str], list[_Position]] = OrderedDict()
"""Where the chunks of texts begin, as far as they were read. A text never changes: its name is its hash."""
_lock = forking.Lock()


def _recall_positions(key: tuple[str, str]) -> list[_Position]:
    with _lock:
        return _positions.get(key) or [_Position(0, b"")]


def _remember_positions(key: tuple[str, str], known: list[_Position]) -> None:
    with _lock:
        if len(known) > len(_positions.get(key, ())):
            _positions[key] = known
            _positions.move_to_end(key)
        while len(_positions) > MAX_REMEMBERED:
            _positions.popitem(last=False)
