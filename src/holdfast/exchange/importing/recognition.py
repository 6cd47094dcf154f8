"""Detect the format of a file, folder or string, and open it as an import source."""

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
from holdfast.exchange.formats.provider_files import (
    JsonRow,
    is_conversation,
    is_message,
    read_conversation,
    read_messages,
)
from holdfast.exchange.formats.records import ImportSource, SessionRecord
from holdfast.exchange.formats.tree import open_export
from holdfast.exchange.layout import MANIFEST
from holdfast.json_documents import decode_json
from holdfast.model.base import require_name
from holdfast.model.tree.files import MESSAGES, META

FORMATS = ("auto", "holdfast", "openai", "chatgpt", "locomo")
ACCEPTED_CONTENT = (
    "OpenAI-style messages (objects with a role) or conversations (objects with messages), ChatGPT conversations"
    " (objects with a mapping), LoCoMo samples (objects with a conversation), or the folder of a Holdfast export"
)
JSON_LINES_SUFFIXES = {".jsonl", ".ndjson"}


class JsonInput(msgspec.Struct, frozen=True):
    """A file or a string with JSON or JSON Lines, not yet decoded."""

    label: str
    """Its name in errors."""
    stem: str
    """The id of its session, or the beginning of the ids, if the sessions have none of their own."""
    open: Callable[[], BinaryIO]


class JsonRows(msgspec.Struct, frozen=True):
    """The decoded values of a `JsonInput`: the items of an array, one value per line, or the only value."""

    read: Callable[[], Iterator[JsonRow]]
    first: Any
    has_many: bool


def open_source(source: Path | None, text: str | None, format: str, session_id: str | None) -> ImportSource:
    """Open a file, a folder or a string. `session_id` renames its only session."""
    if format not in FORMATS:
        raise InvalidArgumentError("format", f"{format!r} is not one of {', '.join(FORMATS)}")
    if session_id is not None:
        require_name("session_id", session_id)
    opened = _open_source(source, text, format)
    return opened if session_id is None else _rename_session(opened, session_id)


def _open_source(source: Path | None, text: str | None, format: str) -> ImportSource:
    if source is None:
        if text is None:
            raise InvalidArgumentError("source", "is missing; pass a file, a folder or a string")
        return _open_json(_text_input(text), format)
    folder = _export_folder(source)
    if folder is not None and format in {"auto", "holdfast"}:
        return open_export(folder)
    if format == "holdfast":
        raise InvalidArgumentError("source", f"{str(source)!r} is a file; a Holdfast export is a folder")
    if source.is_dir():
        raise InvalidArgumentError("source", f"{str(source)!r} is a folder; {format} is read from a file")
    stem = re.sub(r"[^A-Za-z0-9._@-]+", "-", source.stem)[:100].strip(".-@")
    return _open_json(JsonInput(str(source), stem or "import", lambda: _open_file(source)), format)


def _export_folder(source: Path) -> Path | None:
    """The exported folder, if `source` may be one or is a file of one."""
    if not source.exists():
        raise InvalidArgumentError("source", f"there is no file or folder {str(source)!r}")
    if source.is_dir():
        return source
    folder = source.parent
    is_session_file = source.name in {META, MESSAGES} and (folder / META).exists()
    return folder if is_session_file or source.name == MANIFEST else None


def _text_input(text: str) -> JsonInput:
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            "text", f"has a lone surrogate at position {error.start}; decode it as UTF-8"
        ) from None
    return JsonInput("the input", f"import-{hashlib.sha256(content).hexdigest()[:12]}", lambda: io.BytesIO(content))


def _open_file(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise InvalidArgumentError("source", f"{str(file)!r} cannot be read: {error.strerror}") from None


def _open_json(json: JsonInput, format: str) -> ImportSource:
    rows = _read_rows(json)
    if format in {"auto", "openai"} and is_message(rows.first):
        return ImportSource(format="openai", sessions=lambda: iter([_session_of_messages(rows, json.stem)]))
    for name, matches, read in (
        ("openai", is_conversation, _as_iterator(read_conversation)),
        ("chatgpt", is_chatgpt, _as_iterator(read_chatgpt)),
        ("locomo", is_locomo, read_locomo),
    ):
        if format in {"auto", name} and matches(rows.first):
            return ImportSource(format=name, sessions=_sessions(rows, json.stem, read))
    where, _ = next(rows.read(), (json.label, None))
    expected = ACCEPTED_CONTENT if format == "auto" else f"the format {format}"
    raise InvalidArgumentError(
        "source", f"{where} is in no known format: expected {expected}; found {_describe(rows.first)}"
    )


def _session_of_messages(rows: JsonRows, session_id: str) -> SessionRecord:
    """One session whose messages are the rows."""
    first = next(read_messages(rows.read()))
    return SessionRecord(
        session_id=session_id, messages=lambda: read_messages(rows.read()), created_at=first.created_at
    )


def _as_iterator(read: Callable[[str, Any, str], SessionRecord]) -> Callable[[str, Any, str], Iterator[SessionRecord]]:
    return lambda where, row, name: iter([read(where, row, name)])


def _sessions(
    rows: JsonRows, stem: str, read: Callable[[str, Any, str], Iterator[SessionRecord]]
) -> Callable[[], Iterator[SessionRecord]]:
    def sessions() -> Iterator[SessionRecord]:
        for number, (where, row) in enumerate(rows.read(), 1):
            yield from read(where, row, f"{stem}-{number}" if rows.has_many else stem)

    return sessions


def _rename_session(source: ImportSource, session_id: str) -> ImportSource:
    def sessions() -> Iterator[SessionRecord]:
        for number, record in enumerate(source.sessions()):
            if number:
                raise InvalidArgumentError(
                    "session_id", "names one session, but the source has several; omit it, or import one session alone"
                )
            yield msgspec.structs.replace(record, session_id=session_id)

    return ImportSource(format=source.format, sessions=sessions, is_independent=source.is_independent)


def _read_rows(json: JsonInput) -> JsonRows:
    """Read JSON Lines if the first of several lines is a complete object; else one document."""
    lines = _lines(json)
    number, line = next(lines, (0, b""))
    if not number:
        raise InvalidArgumentError("source", f"{json.label} is empty")
    more = next(lines, None) is not None
    try:
        first = decode_json(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        first = None
    if more and (isinstance(first, dict) or Path(json.label).suffix.lower() in JSON_LINES_SUFFIXES):
        first = _decode_line(f"{json.label}, line {number}", line)
        return JsonRows(lambda: _rows_of_lines(json), first, has_many=True)
    document = first if first is not None and not more else _decode_document(json)
    if not isinstance(document, list):
        return JsonRows(lambda: iter([(json.label, document)]), document, has_many=False)
    rows = [(f"{json.label}, [{number}]", row) for number, row in enumerate(document)]
    return JsonRows(lambda: iter(rows), document[0] if document else document, has_many=len(rows) > 1)


def _rows_of_lines(json: JsonInput) -> Iterator[JsonRow]:
    for number, line in _lines(json):
        where = f"{json.label}, line {number}"
        yield where, _decode_line(where, line)


def _lines(json: JsonInput) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    with json.open() as file:
        for number, line in enumerate(file, 1):
            stripped = (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip()
            if stripped:
                yield number, stripped


def _decode_line(where: str, line: bytes) -> Any:
    try:
        return decode_json(line)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError("source", f"{where} is not JSON: {error}") from None


def _decode_document(json: JsonInput) -> Any:
    with json.open() as file:
        content = file.read().removeprefix(b"\xef\xbb\xbf")
    try:
        return decode_json(content)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        position = re.search(r"byte (\d+)", str(error))
        line = content.count(b"\n", 0, int(position[1]) if position else len(content)) + 1
        raise InvalidArgumentError("source", f"{json.label}, line {line} is not JSON: {error}") from None


def _describe(value: Any) -> str:
    match value:
        case dict():
            return f"an object with {', '.join(map(repr, list(value)[:8])) or 'no fields'}"
        case list():
            return "an empty array" if not value else "an array in an array"
        case _:
            return f"a {type(value).__name__}"
