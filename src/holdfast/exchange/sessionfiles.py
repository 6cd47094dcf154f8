"""One session, written out as files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from holdfast.client.client import Client
from holdfast.errors import ConflictError
from holdfast.exchange.files import sync, sync_folders
from holdfast.exchange.tree import (
    MESSAGES,
    META,
    RELATIONS,
    TOOL,
    Use,
    meta_of,
    output_file,
    pretty,
    tool_folder,
)
from holdfast.model import Message, SessionInfo, Usage
from holdfast.parts import ToolPart

PAGE = 100
OUTPUT_PAGE = 1_000_000

_encode = msgspec.json.Encoder().encode


def write_session(client: Client, info: SessionInfo, folder: Path) -> Iterator[int]:
    """Write what `info` tells of, no more, into `folder`, which is new; how many messages are written, as it goes on.

    A page of messages is held at a time, and of each tool only how often it was called.
    """
    folder.mkdir()
    calls: dict[Path, int] = {}
    with (folder / MESSAGES).open("wb") as file:
        for page in _pages(client, info):
            for message in page:
                file.write(_encode(message) + b"\n")
                _write_calls(client, info.session_id, folder, message, calls)
            yield page[-1].seq
        sync(file)
    for place in calls:
        with (place / TOOL).open("ab") as file:
            file.write(b"\n]}\n")
            sync(file)
    with (folder / RELATIONS).open("wb") as file:
        _write_list(file, b'{"uses":[', _uses(client, info))
        sync(file)
    with (folder / META).open("wb") as file:
        file.write(pretty(meta_of(info)))
        sync(file)
    sync_folders(folder)


def _pages(client: Client, info: SessionInfo) -> Iterator[list[Message]]:
    first, last = 1, info.total_message_count
    while first <= last:
        page = client.get_messages(info.session_id, first, last, limit=PAGE).messages
        if not page:
            raise _replaced(info)
        yield page
        first = page[-1].seq + 1
    if client.get_session(info.session_id).created_at != info.created_at:
        raise _replaced(info)


def _replaced(info: SessionInfo) -> ConflictError:
    return ConflictError(
        f"Session {info.session_id} was replaced by another while it was exported; export again",
        resource=info.session_id,
        type="session",
    )


def _write_calls(client: Client, session_id: str, folder: Path, message: Message, calls: dict[Path, int]) -> None:
    """Add the tool calls of a message to the files of their tools, which stay open-ended until all are there."""
    for number, part in enumerate(message.parts):
        if not isinstance(part, ToolPart):
            continue
        place = tool_folder(folder, part.tool_id)
        before = calls.get(place, 0)
        if before == 0:
            place.mkdir(parents=True)
        with (place / TOOL).open("ab") as file:
            file.write(b",\n" if before else b'{"tool_id":' + _encode(part.tool_id) + b',"calls":[\n')
            file.write(_encode(_call(message, number, part)))
        calls[place] = before + 1
        output = place / output_file(part.tool_result_id)
        if part.tool_result_id and not output.exists():
            with output.open("wb") as file:
                _write_output(client, session_id, part.tool_result_id, file)
                sync(file)


def _call(message: Message, number: int, part: ToolPart) -> dict[str, Any]:
    told = {name: value for name, value in part.to_dict().items() if name not in {"type", "tool_id"}}
    where = {"message_id": message.id, "seq": message.seq, "part": number, "created_at": message.created_at}
    kept = {"output_file": output_file(part.tool_result_id)} if part.tool_result_id else {}
    return {**where, **told, **kept}


def _write_output(client: Client, session_id: str, tool_result_id: str, file: BinaryIO) -> None:
    offset, more = 0, True
    while more:
        piece = client.read_tool_result(session_id, tool_result_id, offset=offset, limit=OUTPUT_PAGE)
        file.write(piece.content.encode())
        offset, more = offset + len(piece.content), piece.has_more


def _uses(client: Client, info: SessionInfo) -> Iterator[Use]:
    left = info.contexts_used + info.skills_used
    after = None
    while left > 0:
        page: list[Usage] = client.list_usage(info.session_id, after=after, limit=min(left, PAGE))
        if not page:
            return
        for usage in page:
            yield Use(
                kind=usage.kind,
                uri=usage.uri,
                created_at=usage.created_at,
                input=usage.input,
                output=usage.output,
                success=usage.success,
            )
        after, left = page[-1].id, left - len(page)


def _write_list(file: BinaryIO, opening: bytes, rows: Iterator[Any]) -> None:
    """A JSON list with a row on each line."""
    file.write(opening)
    file.writelines((b",\n" if number else b"\n") + _encode(row) for number, row in enumerate(rows))
    file.write(b"\n]}\n")
