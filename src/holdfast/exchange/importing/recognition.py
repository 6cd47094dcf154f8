"""Which format something is in, told by what is in it, and its sessions as a source."""

import hashlib
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from holdfast.errors import InvalidArgumentError
from holdfast.exchange.formats.chatgpt import is_chatgpt, read_chatgpt
from holdfast.exchange.formats.locomo import is_locomo, read_locomo
from holdfast.exchange.formats.provider_files import Row, is_conversation, is_message, read_conversation, read_messages
from holdfast.exchange.formats.records import SessionRecord, Source
from holdfast.exchange.formats.tree import tree_source
from holdfast.exchange.layout import MANIFEST
from holdfast.model.base import require_name
from holdfast.model.files import MESSAGES, META

FORMATS = ("auto", "holdfast", "openai", "chatgpt", "locomo")
LOOKED_FOR = (
    "looked for OpenAI-style messages (objects with a role) or conversations (with messages), conversations of ChatGPT"
    " (with a mapping), samples of LoCoMo (with a conversation) and the folder of an export of Holdfast"
)
LINES = {".jsonl", ".ndjson"}


class Material(msgspec.Struct, frozen=True):
    """JSON, or JSON Lines, as it came."""

    label: str
    """What it is called in errors."""
    stem: str
    """What its sessions are called if they have no names of their own."""
    open: Callable[[], BinaryIO]


class Rows(msgspec.Struct, frozen=True):
    """The objects in a material, in order: those of an array, the only one, or one from each line."""

    read: Callable[[], Iterator[Row]]
    first: Any
    many: bool


def open_source(source: Path | None, text: str | None, format: str, session_id: str | None) -> Source:
    """The sessions in a file, a folder or a text. `session_id` renames the only one."""
    if format not in FORMATS:
        raise InvalidArgumentError("format", f"{format!r} is not one of {', '.join(FORMATS)}")
    if session_id is not None:
        require_name("session_id", session_id)
    found = _opened(source, text, format)
    return found if session_id is None else _renamed(found, session_id)


def _opened(source: Path | None, text: str | None, format: str) -> Source:
    if source is None:
        if text is None:
            raise InvalidArgumentError("source", "is missing; name a file or a folder, or give a text")
        return _read(_material_of_text(text), format)
    folder = _tree_at(source)
    if folder is not None and format in {"auto", "holdfast"}:
        return tree_source(folder)
    if format == "holdfast":
        raise InvalidArgumentError("source", f"{str(source)!r} is a file; an export of Holdfast is a folder")
    if source.is_dir():
        raise InvalidArgumentError("source", f"{str(source)!r} is a folder; {format} is read from a file")
    stem = re.sub(r"[^A-Za-z0-9._@-]+", "-", source.stem)[:100].strip(".-@")
    return _read(Material(str(source), stem or "import", lambda: _open(source)), format)


def _tree_at(source: Path) -> Path | None:
    """The folder of the export that `source` is, or is a file of."""
    if not source.exists():
        raise InvalidArgumentError("source", f"there is no file or folder {str(source)!r}")
    if source.is_dir():
        return source
    folder = source.parent
    whole = source.name in {META, MESSAGES} and (folder / META).exists()
    return folder if whole or source.name == MANIFEST else None


def _material_of_text(text: str) -> Material:
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            "text", f"has a lone surrogate at position {error.start}; decode it as UTF-8"
        ) from None
    return Material("the input", f"import-{hashlib.sha256(content).hexdigest()[:12]}", lambda: io.BytesIO(content))


def _open(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise InvalidArgumentError("source", f"{str(file)!r} cannot be read: {error.strerror}") from None


def _read(material: Material, format: str) -> Source:
    rows = _rows(material)
    if format in {"auto", "openai"} and is_message(rows.first):
        return Source(format="openai", sessions=lambda: iter([_only(rows, material.stem)]))
    for name, fits, read in (
        ("openai", is_conversation, _one(read_conversation)),
        ("chatgpt", is_chatgpt, _one(read_chatgpt)),
        ("locomo", is_locomo, read_locomo),
    ):
        if format in {"auto", name} and fits(rows.first):
            return Source(format=name, sessions=_sessions(rows, material.stem, read))
    where, _ = next(rows.read(), (material.label, None))
    sought = LOOKED_FOR if format == "auto" else f"looked for {format}"
    raise InvalidArgumentError("source", f"{where} is not understood: {sought}; found {_described(rows.first)}")


def _only(rows: Rows, stem: str) -> SessionRecord:
    """The session whose messages are the rows."""
    first = next(read_messages(rows.read()))
    return SessionRecord(session_id=stem, messages=lambda: read_messages(rows.read()), created_at=first.created_at)


def _one(read: Callable[[str, Any, str], SessionRecord]) -> Callable[[str, Any, str], Iterator[SessionRecord]]:
    return lambda where, given, name: iter([read(where, given, name)])


def _sessions(
    rows: Rows, stem: str, read: Callable[[str, Any, str], Iterator[SessionRecord]]
) -> Callable[[], Iterator[SessionRecord]]:
    def sessions() -> Iterator[SessionRecord]:
        for number, (where, given) in enumerate(rows.read(), 1):
            yield from read(where, given, f"{stem}-{number}" if rows.many else stem)

    return sessions


def _renamed(source: Source, session_id: str) -> Source:
    def sessions() -> Iterator[SessionRecord]:
        for number, record in enumerate(source.sessions()):
            if number:
                raise InvalidArgumentError(
                    "session_id", "names one session, but the source has several; leave it out, or import one alone"
                )
            yield msgspec.structs.replace(record, session_id=session_id)

    return Source(format=source.format, sessions=sessions, apart=source.apart)


def _rows(material: Material) -> Rows:
    """By lines if the first one is an object by itself and others follow; else as one document."""
    lines = _lines(material)
    number, line = next(lines, (0, b""))
    if not number:
        raise InvalidArgumentError("source", f"{material.label} is empty")
    more = next(lines, None) is not None
    try:
        first = msgspec.json.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        first = None
    if more and (isinstance(first, dict) or Path(material.label).suffix.lower() in LINES):
        first = _decoded(f"{material.label}, line {number}", line)
        return Rows(lambda: _rows_of_lines(material), first, many=True)
    document = first if first is not None and not more else _document(material)
    if not isinstance(document, list):
        return Rows(lambda: iter([(material.label, document)]), document, many=False)
    rows = [(f"{material.label}, [{number}]", row) for number, row in enumerate(document)]
    return Rows(lambda: iter(rows), document[0] if document else document, many=len(rows) > 1)


def _rows_of_lines(material: Material) -> Iterator[Row]:
    for number, line in _lines(material):
        where = f"{material.label}, line {number}"
        yield where, _decoded(where, line)


def _lines(material: Material) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    with material.open() as file:
        for number, line in enumerate(file, 1):
            said = (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip()
            if said:
                yield number, said


def _decoded(where: str, line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError("source", f"{where} is not JSON: {error}") from None


def _document(material: Material) -> Any:
    with material.open() as file:
        content = file.read().removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        told = re.search(r"byte (\d+)", str(error))
        line = content.count(b"\n", 0, int(told[1]) if told else len(content)) + 1
        raise InvalidArgumentError("source", f"{material.label}, line {line} is not JSON: {error}") from None


def _described(value: Any) -> str:
    match value:
        case dict():
            return f"an object with {', '.join(map(repr, list(value)[:8])) or 'nothing in it'}"
        case list():
            return "an empty array" if not value else "an array in an array"
        case _:
            return f"a {type(value).__name__}"
