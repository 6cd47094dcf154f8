"""The folder of a session's tools: each tool id is a folder with its calls and its large outputs."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from holdfast.engine.tree.message_lines import BATCH_MESSAGES, read_in_batches
from holdfast.engine.tree.nodes import File, Folder, Node, lines_file, loaded_file
from holdfast.engine.tree.reading import document_lines
from holdfast.model.tree.files import TOOL, TOOLS, output_file_name, tool_folder_name
from holdfast.model.uris import child_uri
from holdfast.session_files import tool_call_rows, tool_file_header
from holdfast.store.database import Tx
from holdfast.store.tables import lineage, tool_calls, tool_results
from holdfast.store.tables.lineage import LogRange
from holdfast.store.tables.sessions import StoredSession

NO_ID = ""
"""The id of calls without one. They are not in `tool.json`, but may have large outputs."""


def tools_folder(tx: Tx, session: StoredSession, uri: str) -> Folder | None:
    """Return the folder of all tool ids, in the order of their first calls, or None if there is no call."""
    log_ranges = lineage.log_ranges(tx, session)

    def children() -> Iterator[Folder]:
        yield from (_tool_folder(tx, session, log_ranges, tool_id, uri) for tool_id in _tool_ids(tx, log_ranges))

    def child(name: str) -> Folder | None:
        tool_id = _find_tool_id(tx, log_ranges, name)
        return None if tool_id is None else _tool_folder(tx, session, log_ranges, tool_id, uri)

    if not (tool_calls.has_any(tx, log_ranges) or tool_results.list_of_tool(tx, log_ranges, NO_ID)):
        return None
    return Folder(name=TOOLS, uri=uri, changed_at=session.changed_at, children=children, child=child)


def _tool_ids(tx: Tx, log_ranges: list[LogRange]) -> Iterator[str]:
    seen: set[str] = set()
    for log_range in log_ranges:
        for first in range(log_range.first, log_range.last + 1, BATCH_MESSAGES):
            last = min(first + BATCH_MESSAGES - 1, log_range.last)
            calls = tool_calls.read_calls(tx, [LogRange(log_range.log_id, first, last)])
            found = dict.fromkeys(tool_id for _, tool_id, _ in calls if tool_id not in seen)
            seen |= found.keys()
            yield from found
    if tool_results.list_of_tool(tx, log_ranges, NO_ID):
        yield NO_ID


def _find_tool_id(tx: Tx, log_ranges: list[LogRange], name: str) -> str | None:
    """Return the tool id whose folder has this name. A hash as a name is compared to the names of all ids."""
    if name != tool_folder_name(name):
        return next((tool_id for tool_id in _tool_ids(tx, log_ranges) if tool_folder_name(tool_id) == name), None)
    has_calls = any(tool_calls.seqs_of_call(tx, log_range, name, 1) for log_range in log_ranges)
    return name if has_calls else None


def _tool_folder(tx: Tx, session: StoredSession, log_ranges: list[LogRange], tool_id: str, tools_uri: str) -> Folder:
    name, changed_at = tool_folder_name(tool_id), session.changed_at
    uri = child_uri(tools_uri, name)

    def calls_file() -> File:
        rows = partial(_call_rows, tx, log_ranges, tool_id)
        return lines_file(uri, TOOL, changed_at, lambda offset: document_lines(tool_file_header(tool_id), rows, offset))

    def output_files(tool_result_id: str | None) -> Iterator[File]:
        for found_id, size in tool_results.list_of_tool(tx, log_ranges, tool_id, tool_result_id):
            yield loaded_file(uri, output_file_name(found_id), changed_at, _output_loader(tx, found_id), size=size)

    def children() -> Iterator[Node]:
        if tool_id != NO_ID:
            yield calls_file()
        yield from output_files(None)

    def child(child_name: str) -> Node | None:
        if child_name == TOOL and tool_id != NO_ID:
            return calls_file()
        return next((file for file in output_files(child_name.removesuffix(".txt")) if file.name == child_name), None)

    return Folder(name=name, uri=uri, changed_at=changed_at, children=children, child=child)


def _output_loader(tx: Tx, tool_result_id: str) -> Callable[[], str]:
    def load() -> str:
        content = tool_results.read_content(tx, tool_result_id)
        if content is None:
            raise tool_results.damage_error(tool_result_id)
        return content

    return load


def _call_rows(tx: Tx, log_ranges: list[LogRange], tool_id: str, skip: int) -> Iterator[dict[str, Any]]:
    for log_range in log_ranges:
        first = log_range.first
        while seqs := tool_calls.seqs_of_call(
            tx, LogRange(log_range.log_id, first, log_range.last), tool_id, BATCH_MESSAGES
        ):
            for message in read_in_batches(tx, log_range.log_id, seqs):
                for part, row in tool_call_rows(message):
                    if part.tool_id == tool_id and skip == 0:
                        yield row
                    elif part.tool_id == tool_id:
                        skip -= 1
            first = seqs[-1] + 1
