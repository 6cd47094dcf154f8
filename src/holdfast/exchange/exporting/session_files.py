"""One session, written out as files."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from holdfast.client.sync.client import Client
from holdfast.errors import ConflictError, NotFoundError
from holdfast.exchange.exporting.atomic_files import sync, sync_folders
from holdfast.exchange.layout import output_file, tool_folder
from holdfast.model.archives import ArchiveInfo
from holdfast.model.files import (
    ABSTRACT,
    END_OF_LIST,
    HISTORY,
    MESSAGES,
    META,
    OVERVIEW,
    RELATIONS,
    TOOL,
    calls_in,
    meta_of,
    opening_of_calls,
    pretty,
    relations,
)
from holdfast.model.messages import Message
from holdfast.model.sessions import SessionInfo, Usage
from holdfast.model.uris import below

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
            file.write(END_OF_LIST)
            sync(file)
    with (folder / RELATIONS).open("wb") as file:
        file.writelines(relations(_uses(client, info)))
        sync(file)
    with (folder / META).open("wb") as file:
        file.write(pretty(meta_of(info)))
        sync(file)
    _write_history(client, info, folder)
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
    for part, told in calls_in(message):
        place = tool_folder(folder, part.tool_id)
        before = calls.get(place, 0)
        if before == 0:
            place.mkdir(parents=True)
        kept = {"output_file": output_file(part.tool_result_id)} if part.tool_result_id else {}
        with (place / TOOL).open("ab") as file:
            file.write(b",\n" if before else opening_of_calls(part.tool_id) + b"\n")
            file.write(_encode({**told, **kept}))
        calls[place] = before + 1
        output = place / output_file(part.tool_result_id)
        if part.tool_result_id and not output.exists():
            with output.open("wb") as file:
                _write_output(client, session_id, part.tool_result_id, file)
                sync(file)


def _write_output(client: Client, session_id: str, tool_result_id: str, file: BinaryIO) -> None:
    offset, more = 0, True
    while more:
        piece = client.read_tool_result(session_id, tool_result_id, offset=offset, limit=OUTPUT_PAGE)
        file.write(piece.content.encode())
        offset, more = offset + len(piece.content), piece.has_more


def _uses(client: Client, info: SessionInfo) -> Iterator[Usage]:
    left = info.contexts_used + info.skills_used
    after = None
    while left > 0:
        page: list[Usage] = client.list_usage(info.session_id, after=after, limit=min(left, PAGE))
        if not page:
            return
        yield from page
        after, left = page[-1].id, left - len(page)


def _write_history(client: Client, info: SessionInfo, folder: Path) -> None:
    """The archives and the summaries, as they can be read under `viking://`."""
    for archive in _archives(client, info):
        place = folder / HISTORY / archive.archive_id
        place.mkdir(parents=True)
        for entry in client.ls(archive.uri, show_all_hidden=True):
            _copy(client, entry.uri, place / entry.name)
    if (folder / HISTORY).exists():
        for name in (ABSTRACT, OVERVIEW):
            _copy(client, below(info.uri, name), folder / name)


def _archives(client: Client, info: SessionInfo) -> Iterator[ArchiveInfo]:
    after = 0
    while page := client.list_archives(info.session_id, after=after, limit=PAGE):
        yield from (archive for archive in page if archive.last_seq <= info.total_message_count)
        after += len(page)  # they are numbered without a gap


def _copy(client: Client, uri: str, file: Path) -> None:
    try:
        piece = client.read(uri, limit=PAGE)
    except NotFoundError:  # its archive is not done, or was taken up again since it was listed
        return
    with file.open("wb") as opened:
        offset = 0
        while piece:
            opened.write(piece.encode())
            offset += PAGE
            piece = client.read(uri, offset, PAGE)
        sync(opened)
