"""The nodes of the `viking://` tree. They are built from rows on demand: listing a folder reads no file."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from io import StringIO
from itertools import islice

import msgspec

from holdfast.engine.commits.archives import read_messages
from holdfast.errors import TooLargeError
from holdfast.model.archives import archive_id, archive_number
from holdfast.model.files import (
    ABSTRACT,
    DONE,
    FAILED,
    HISTORY,
    MEMORY_DIFF,
    MESSAGES,
    META,
    OVERVIEW,
    RELATIONS,
    TOOL,
    TOOLS,
    MemoryDiff,
)
from holdfast.model.identity import Principal
from holdfast.model.sessions import Usage, session_uri
from holdfast.model.uris import SCHEME, child_uri
from holdfast.session_files import (
    encode_pretty,
    encode_relations,
    encode_rows,
    session_meta,
    tool_call_rows,
    tool_file_header,
)
from holdfast.store.database import Tx
from holdfast.store.tables import archives, lineage, messages, session_info, tool_calls, usages
from holdfast.store.tables import sessions as store
from holdfast.store.tables.archives import StoredArchive
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros

PAGE_SIZE = 100
MAX_LINES = 10_000
"""Largest number of lines that one read returns, and of rows that a JSON document may have."""

_encode = msgspec.json.Encoder().encode


def _no_abstract() -> str:
    return ""


class File(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uri: str
    changed_at: int
    read: Callable[[int, int | None], str]
    """Reads `limit` lines from `offset` on; all of them if `limit` is None."""
    size: int = 0


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uri: str
    changed_at: int
    children: Callable[[], Iterator["File | Folder"]]
    child: Callable[[str], "File | Folder | None"]
    abstract: Callable[[], str] = _no_abstract


def root(tx: Tx, principal: Principal) -> Folder:
    """Return the root folder of the tree that the caller can see."""
    newest = store.page(tx, principal.user_id, limit=1, before=None, q=None, state=None)
    changed_at = newest[0].changed_at if newest else 0
    home = child_uri(child_uri(SCHEME, "user"), principal.user_id)
    sessions_folder = Folder(
        name="sessions",
        uri=child_uri(home, "sessions"),
        changed_at=changed_at,
        children=partial(_session_folders, tx, principal),
        child=partial(_find_session, tx, principal),
    )
    user_folder = _folder(principal.user_id, home, changed_at, lambda: iter([sessions_folder]))
    users_folder = _folder("user", child_uri(SCHEME, "user"), changed_at, lambda: iter([user_folder]))
    return _folder("", SCHEME, changed_at, lambda: iter([users_folder]))


def find(tx: Tx, principal: Principal, names: tuple[str, ...]) -> File | Folder | None:
    """Return the node at the path `names`. An empty name means the caller's user id."""
    node: File | Folder | None = root(tx, principal)
    for name in names:
        node = node.child(name or principal.user_id) if isinstance(node, Folder) else None
    return node


def slice_lines(text: str, offset: int, limit: int | None) -> str:
    r"""Return `limit` lines of a text from `offset` on. Only a newline ends a line.

    >>> slice_lines("one\ntwo\nthree", 1, 1)
    'two\n'
    """
    return "".join(islice(StringIO(text, newline="\n"), offset, None if limit is None else offset + limit))


def _folder(
    name: str,
    uri: str,
    changed_at: int,
    children: Callable[[], Iterator[File | Folder]],
    abstract: Callable[[], str] = _no_abstract,
) -> Folder:
    """Return a folder with few children, which are searched one by one."""

    def child(child_name: str) -> File | Folder | None:
        return next((node for node in children() if node.name == child_name), None)

    return Folder(name=name, uri=uri, changed_at=changed_at, children=children, child=child, abstract=abstract)


def _text_file(folder: str, name: str, changed_at: int, text: str) -> File:
    """Return a file with the given content."""
    return File(
        name=name,
        uri=child_uri(folder, name),
        changed_at=changed_at,
        read=partial(slice_lines, text),
        size=len(text.encode()),
    )


def _generated_file(folder: str, name: str, changed_at: int, generate: Callable[[], bytes]) -> File:
    """Return a file whose content is generated on each read."""
    return File(
        name=name,
        uri=child_uri(folder, name),
        changed_at=changed_at,
        read=lambda offset, limit: slice_lines(generate().decode(), offset, limit),
    )


def _session_folders(tx: Tx, principal: Principal) -> Iterator[Folder]:
    before: int | None = None
    while True:
        page = store.page(tx, principal.user_id, limit=PAGE_SIZE, before=before, q=None, state=None)
        yield from (_session_folder(tx, session) for session in page)
        if len(page) < PAGE_SIZE:
            return
        before = page[-1].log_id


def _find_session(tx: Tx, principal: Principal, name: str) -> Folder | None:
    session = store.find(tx, principal.user_id, name)
    return None if session is None else _session_folder(tx, session)


def _session_folder(tx: Tx, session: StoredSession) -> Folder:
    uri, changed_at = session_uri(session.user_id, session.session_id), session.changed_at
    latest = cache(lambda: archives.latest_done(tx, session.log_id))

    def children() -> Iterator[File | Folder]:
        archive = latest()
        if archive is not None:
            ended_at = archive.ended_at or archive.created_at
            yield _text_file(uri, ABSTRACT, ended_at, archive.rolling_abstract)
            yield _text_file(uri, OVERVIEW, ended_at, archive.rolling)
        yield _generated_file(
            uri, META, changed_at, lambda: encode_pretty(session_meta(session_info.read_session_info(tx, session)))
        )
        yield _generated_file(uri, RELATIONS, changed_at, lambda: b"".join(encode_relations(_uses(tx, session))))
        yield _messages_file(tx, session, uri, changed_at, session.live_from, session.last_seq)
        if tool_calls.has_any(tx, lineage.log_ranges(tx, session)):
            yield _tools_folder(tx, session, child_uri(uri, TOOLS))
        if archives.last_number_and_time(tx, session.log_id)[0]:
            yield _history_folder(tx, session, child_uri(uri, HISTORY))

    def abstract() -> str:
        archive = latest()
        return "" if archive is None else archive.rolling_abstract

    return _folder(session.session_id, uri, changed_at, children, abstract)


def _messages_file(tx: Tx, session: StoredSession, folder: str, changed_at: int, first: int, last: int) -> File:
    uri = child_uri(folder, MESSAGES)

    def read(offset: int, limit: int | None) -> str:
        start = first + offset
        end = last if limit is None else min(last, start + limit - 1)
        if end < start:
            return ""
        _check_line_count(uri, end - start + 1, "read it in several parts, with offset and limit")
        return b"".join(_encode(message) + b"\n" for message in read_messages(tx, session, start, end)).decode()

    return File(name=MESSAGES, uri=uri, changed_at=changed_at, read=read)


def _uses(tx: Tx, session: StoredSession) -> Iterator[Usage]:
    found = usages.read(tx, session.log_id, None, MAX_LINES + 1)
    uri = child_uri(session_uri(session.user_id, session.session_id), RELATIONS)
    _check_line_count(uri, len(found), "list the uses of the session instead")
    return iter(found)


def _tools_folder(tx: Tx, session: StoredSession, uri: str) -> Folder:
    log_ranges = lineage.log_ranges(tx, session)

    def tool_folder(tool_id: str) -> Folder:
        folder_uri = child_uri(uri, tool_id)
        file = _generated_file(
            folder_uri, TOOL, session.changed_at, partial(_encode_calls, tx, log_ranges, tool_id, folder_uri)
        )
        return _folder(tool_id, folder_uri, session.changed_at, lambda: iter([file]))

    def children() -> Iterator[Folder]:
        page = [""]
        while page:
            page = tool_calls.list_tool_ids(tx, log_ranges, after=page[-1], limit=PAGE_SIZE)
            yield from map(tool_folder, page)

    def child(name: str) -> Folder | None:
        return tool_folder(name) if tool_calls.messages_of_call(tx, log_ranges, name, 1) else None

    return Folder(name=TOOLS, uri=uri, changed_at=session.changed_at, children=children, child=child)


def _encode_calls(tx: Tx, log_ranges: list[lineage.LogRange], tool_id: str, uri: str) -> bytes:
    message_ranges = tool_calls.messages_of_call(tx, log_ranges, tool_id, MAX_LINES + 1)
    _check_line_count(child_uri(uri, TOOL), len(message_ranges), "read the messages of the session instead")
    found = messages.read(tx, message_ranges, len(message_ranges))
    rows = (row for message in found for part, row in tool_call_rows(message) if part.tool_id == tool_id)
    return b"".join(encode_rows(tool_file_header(tool_id), rows))


def _history_folder(tx: Tx, session: StoredSession, uri: str) -> Folder:
    def children() -> Iterator[Folder]:
        after = 0
        while page := archives.page(tx, session.log_id, after=after, limit=PAGE_SIZE):
            yield from (_archive_folder(tx, session, archive, uri) for archive in page)
            after = page[-1].number

    def child(name: str) -> Folder | None:
        number = archive_number(name)
        archive = None if number is None else archives.find(tx, session.log_id, number)
        return None if archive is None else _archive_folder(tx, session, archive, uri)

    return Folder(name=HISTORY, uri=uri, changed_at=session.updated_at, children=children, child=child)


def _archive_folder(tx: Tx, session: StoredSession, archive: StoredArchive, history: str) -> Folder:
    name = archive_id(archive.number)
    uri = child_uri(history, name)
    ended_at = archive.ended_at or archive.created_at

    def children() -> Iterator[File]:
        yield _messages_file(tx, session, uri, archive.created_at, archive.first_seq, archive.last_seq)
        yield _text_file(uri, META, ended_at, encode_pretty(archives.info(session, archive)).decode())
        if archive.state == "done":
            diff = MemoryDiff(archive_uri=uri, extracted_at=from_micros(ended_at))
            yield _text_file(uri, ABSTRACT, ended_at, archive.abstract)
            yield _text_file(uri, OVERVIEW, ended_at, archive.overview)
            yield _text_file(uri, MEMORY_DIFF, ended_at, encode_pretty(diff).decode())
            yield _text_file(uri, DONE, ended_at, encode_pretty({"done_at": from_micros(ended_at)}).decode())
        if archive.state == "failed":
            yield _text_file(uri, FAILED, ended_at, encode_pretty(archives.info(session, archive).failure).decode())

    return _folder(name, uri, ended_at, children, lambda: archive.abstract)


def _check_line_count(uri: str, count: int, remedy: str) -> None:
    if count > MAX_LINES:
        raise TooLargeError(
            f"{uri} is too long: one read returns at most {MAX_LINES:,} lines; {remedy}",
            uri=uri,
            most=MAX_LINES,
        )
