"""Write one session as files."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from holdfast.client.sync.client import Client
from holdfast.errors import ConflictError, NotFoundError
from holdfast.exchange.exporting.atomic_files import sync, sync_folders
from holdfast.exchange.layout import output_file_name, tool_folder
from holdfast.model.archives import ArchiveInfo
from holdfast.model.files import ABSTRACT, HISTORY, MESSAGES, META, OVERVIEW, RELATIONS, TOOL
from holdfast.model.messages import Message
from holdfast.model.sessions import SessionInfo, Usage
from holdfast.model.uris import child_uri
from holdfast.session_files import (
    END_OF_ROWS,
    encode_pretty,
    encode_relations,
    session_meta,
    tool_call_rows,
    tool_file_header,
)

PAGE_SIZE = 100
OUTPUT_PAGE_CHARS = 1_000_000

_encode = msgspec.json.Encoder().encode


def write_session(client: Client, info: SessionInfo, folder: Path) -> Iterator[int]:
    """Write the session that `info` describes to a new `folder`, and yield the number of messages written so far.

    Later messages are not written. Memory holds one page of messages, and the number of calls of each tool.
    """
    folder.mkdir()
    call_counts: dict[Path, int] = {}
    with (folder / MESSAGES).open("wb") as file:
        for page in _message_pages(client, info):
            for message in page:
                file.write(_encode(message) + b"\n")
                _write_calls(client, info.session_id, folder, message, call_counts)
            yield page[-1].seq
        sync(file)
    for tool in call_counts:
        with (tool / TOOL).open("ab") as file:
            file.write(END_OF_ROWS)
            sync(file)
    with (folder / RELATIONS).open("wb") as file:
        file.writelines(encode_relations(_uses(client, info)))
        sync(file)
    with (folder / META).open("wb") as file:
        file.write(encode_pretty(session_meta(info)))
        sync(file)
    _write_history(client, info, folder)
    sync_folders(folder)


def _message_pages(client: Client, info: SessionInfo) -> Iterator[list[Message]]:
    first, last = 1, info.total_message_count
    while first <= last:
        page = client.get_messages(info.session_id, first, last, limit=PAGE_SIZE).messages
        if not page:
            raise _session_replaced(info)
        yield page
        first = page[-1].seq + 1
    if client.get_session(info.session_id).created_at != info.created_at:
        raise _session_replaced(info)


def _session_replaced(info: SessionInfo) -> ConflictError:
    return ConflictError(
        f"Session {info.session_id} was deleted and created again during the export; export again",
        resource=info.session_id,
        type="session",
    )


def _write_calls(client: Client, session_id: str, folder: Path, message: Message, call_counts: dict[Path, int]) -> None:
    """Append the tool calls of a message to the files of their tools. `write_session` ends these files at last."""
    for part, row in tool_call_rows(message):
        tool = tool_folder(folder, part.tool_id)
        count = call_counts.get(tool, 0)
        if count == 0:
            tool.mkdir(parents=True)
        output_field = {"output_file": output_file_name(part.tool_result_id)} if part.tool_result_id else {}
        with (tool / TOOL).open("ab") as file:
            file.write(b",\n" if count else tool_file_header(part.tool_id) + b"\n")
            file.write(_encode({**row, **output_field}))
        call_counts[tool] = count + 1
        output = tool / output_file_name(part.tool_result_id)
        if part.tool_result_id and not output.exists():
            with output.open("wb") as file:
                _write_output(client, session_id, part.tool_result_id, file)
                sync(file)


def _write_output(client: Client, session_id: str, tool_result_id: str, file: BinaryIO) -> None:
    offset, more = 0, True
    while more:
        piece = client.read_tool_result(session_id, tool_result_id, offset=offset, limit=OUTPUT_PAGE_CHARS)
        file.write(piece.content.encode())
        offset, more = offset + len(piece.content), piece.has_more


def _uses(client: Client, info: SessionInfo) -> Iterator[Usage]:
    remaining = info.contexts_used + info.skills_used
    after = None
    while remaining > 0:
        page: list[Usage] = client.list_usage(info.session_id, after=after, limit=min(remaining, PAGE_SIZE))
        if not page:
            return
        yield from page
        after, remaining = page[-1].id, remaining - len(page)


def _write_history(client: Client, info: SessionInfo, folder: Path) -> None:
    """Copy the archives and the summaries from the `viking://` tree."""
    for archive in _archives(client, info):
        archive_folder = folder / HISTORY / archive.archive_id
        archive_folder.mkdir(parents=True)
        for entry in client.ls(archive.uri, show_all_hidden=True):
            _copy(client, entry.uri, archive_folder / entry.name)
    if (folder / HISTORY).exists():
        for name in (ABSTRACT, OVERVIEW):
            _copy(client, child_uri(info.uri, name), folder / name)


def _archives(client: Client, info: SessionInfo) -> Iterator[ArchiveInfo]:
    after = 0
    while page := client.list_archives(info.session_id, after=after, limit=PAGE_SIZE):
        yield from (archive for archive in page if archive.last_seq <= info.total_message_count)
        after += len(page)  # archive numbers have no gaps


def _copy(client: Client, uri: str, file: Path) -> None:
    try:
        lines = client.read(uri, limit=PAGE_SIZE)
    except NotFoundError:  # the archive is not done, or was restarted after it was listed
        return
    with file.open("wb") as opened:
        offset = 0
        while lines:
            opened.write(lines.encode())
            offset += PAGE_SIZE
            lines = client.read(uri, offset, PAGE_SIZE)
        sync(opened)
