"""The `viking://` tree, made of rows as it is walked through. What is not looked at is not read."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from io import StringIO
from itertools import islice

import msgspec

from holdfast.engine.commits import archives as reading
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
    calls_in,
    listed,
    meta_of,
    opening_of_calls,
    pretty,
    relations,
)
from holdfast.model.identity import Principal
from holdfast.model.sessions import Usage, session_uri
from holdfast.model.uris import SCHEME, below
from holdfast.store.database import Tx
from holdfast.store.tables import archives, lineage, messages, session_info, tool_calls, usages
from holdfast.store.tables import sessions as store
from holdfast.store.tables.archives import StoredArchive
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros

PAGE = 100
MAX_LINES = 10_000
"""How many lines are read at once. What is one document must not be made of more rows than that."""

_encode = msgspec.json.Encoder().encode


def no_abstract() -> str:
    return ""


class File(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uri: str
    changed_at: int
    read: Callable[[int, int | None], str]
    """Lines from one on, and how many, if not all."""
    size: int = 0


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uri: str
    changed_at: int
    children: Callable[[], Iterator["File | Folder"]]
    child: Callable[[str], "File | Folder | None"]
    abstract: Callable[[], str] = no_abstract


def root(tx: Tx, principal: Principal) -> Folder:
    """All that a caller can see."""
    newest = store.page(tx, principal.user_id, limit=1, before=None, q=None, state=None)
    changed_at = newest[0].changed_at if newest else 0
    home = below(below(SCHEME, "user"), principal.user_id)
    own_sessions = Folder(
        name="sessions",
        uri=below(home, "sessions"),
        changed_at=changed_at,
        children=partial(_sessions, tx, principal),
        child=partial(_session_called, tx, principal),
    )
    own = _folder(principal.user_id, home, changed_at, lambda: iter([own_sessions]))
    users = _folder("user", below(SCHEME, "user"), changed_at, lambda: iter([own]))
    return _folder("", SCHEME, changed_at, lambda: iter([users]))


def find(tx: Tx, principal: Principal, names: tuple[str, ...]) -> File | Folder | None:
    """What `names` lead to, from the root on; an empty one is the caller's own."""
    node: File | Folder | None = root(tx, principal)
    for name in names:
        node = node.child(name or principal.user_id) if isinstance(node, Folder) else None
    return node


def lines(text: str, offset: int, limit: int | None) -> str:
    r"""Lines of a text. Only a newline ends one.

    >>> lines("one\ntwo\nthree", 1, 1)
    'two\n'
    """
    return "".join(islice(StringIO(text, newline="\n"), offset, None if limit is None else offset + limit))


def _folder(
    name: str,
    uri: str,
    changed_at: int,
    children: Callable[[], Iterator[File | Folder]],
    abstract: Callable[[], str] = no_abstract,
) -> Folder:
    """A folder of a few, among which one is found by looking."""

    def child(wanted: str) -> File | Folder | None:
        return next((node for node in children() if node.name == wanted), None)

    return Folder(name=name, uri=uri, changed_at=changed_at, children=children, child=child, abstract=abstract)


def _text(folder: str, name: str, changed_at: int, text: str) -> File:
    """A file whose content is at hand."""
    return File(
        name=name,
        uri=below(folder, name),
        changed_at=changed_at,
        read=partial(lines, text),
        size=len(text.encode()),
    )


def _made(folder: str, name: str, changed_at: int, make: Callable[[], bytes]) -> File:
    """A file whose content is made when it is read."""
    return File(
        name=name,
        uri=below(folder, name),
        changed_at=changed_at,
        read=lambda offset, limit: lines(make().decode(), offset, limit),
    )


def _sessions(tx: Tx, principal: Principal) -> Iterator[Folder]:
    before: int | None = None
    while True:
        page = store.page(tx, principal.user_id, limit=PAGE, before=before, q=None, state=None)
        yield from (_session(tx, session) for session in page)
        if len(page) < PAGE:
            return
        before = page[-1].log_id


def _session_called(tx: Tx, principal: Principal, name: str) -> Folder | None:
    session = store.find(tx, principal.user_id, name)
    return None if session is None else _session(tx, session)


def _session(tx: Tx, session: StoredSession) -> Folder:
    uri, at = session_uri(session.user_id, session.session_id), session.changed_at
    latest = cache(lambda: archives.latest_done(tx, session.log_id))

    def children() -> Iterator[File | Folder]:
        done = latest()
        if done is not None:
            ended_at = done.ended_at or done.created_at
            yield _text(uri, ABSTRACT, ended_at, done.rolling_abstract)
            yield _text(uri, OVERVIEW, ended_at, done.rolling)
        yield _made(uri, META, at, lambda: pretty(meta_of(session_info.gather(tx, session))))
        yield _made(uri, RELATIONS, at, lambda: b"".join(relations(_uses(tx, session))))
        yield _messages(tx, session, uri, at, session.live_from, session.last_seq)
        if tool_calls.is_any(tx, lineage.log_ranges(tx, session)):
            yield _tools(tx, session, below(uri, TOOLS))
        if archives.last(tx, session.log_id)[0]:
            yield _history(tx, session, below(uri, HISTORY))

    def abstract() -> str:
        done = latest()
        return "" if done is None else done.rolling_abstract

    return _folder(session.session_id, uri, at, children, abstract)


def _messages(tx: Tx, session: StoredSession, folder: str, at: int, first: int, last: int) -> File:
    uri = below(folder, MESSAGES)

    def read(offset: int, limit: int | None) -> str:
        begin = first + offset
        end = last if limit is None else min(last, begin + limit - 1)
        if end < begin:
            return ""
        _require_few(uri, end - begin + 1, "read it in pieces, with offset and limit")
        said = reading.messages_of(tx, session, begin, end)
        return b"".join(_encode(message) + b"\n" for message in said).decode()

    return File(name=MESSAGES, uri=uri, changed_at=at, read=read)


def _uses(tx: Tx, session: StoredSession) -> Iterator[Usage]:
    found = usages.read(tx, session.log_id, None, MAX_LINES + 1)
    uri = below(session_uri(session.user_id, session.session_id), RELATIONS)
    _require_few(uri, len(found), "list the uses of the session instead")
    return iter(found)


def _tools(tx: Tx, session: StoredSession, uri: str) -> Folder:
    log_ranges = lineage.log_ranges(tx, session)

    def folder_of(tool_id: str) -> Folder:
        place = below(uri, tool_id)
        file = _made(place, TOOL, session.changed_at, partial(_calls, tx, log_ranges, tool_id, place))
        return _folder(tool_id, place, session.changed_at, lambda: iter([file]))

    def children() -> Iterator[Folder]:
        page = [""]
        while page:
            page = tool_calls.tool_ids(tx, log_ranges, after=page[-1], limit=PAGE)
            yield from map(folder_of, page)

    def child(name: str) -> Folder | None:
        return folder_of(name) if tool_calls.speaking_of(tx, log_ranges, name, 1) else None

    return Folder(name=TOOLS, uri=uri, changed_at=session.changed_at, children=children, child=child)


def _calls(tx: Tx, log_ranges: list[lineage.LogRange], tool_id: str, uri: str) -> bytes:
    places = tool_calls.speaking_of(tx, log_ranges, tool_id, MAX_LINES + 1)
    _require_few(below(uri, TOOL), len(places), "read the messages of the session instead")
    said = messages.read(tx, places, len(places))
    rows = (told for message in said for part, told in calls_in(message) if part.tool_id == tool_id)
    return b"".join(listed(opening_of_calls(tool_id), rows))


def _history(tx: Tx, session: StoredSession, uri: str) -> Folder:
    def children() -> Iterator[Folder]:
        after = 0
        while page := archives.page(tx, session.log_id, after=after, limit=PAGE):
            yield from (_archive(tx, session, archive, uri) for archive in page)
            after = page[-1].number

    def child(name: str) -> Folder | None:
        number = archive_number(name)
        archive = None if number is None else archives.find(tx, session.log_id, number)
        return None if archive is None else _archive(tx, session, archive, uri)

    return Folder(name=HISTORY, uri=uri, changed_at=session.updated_at, children=children, child=child)


def _archive(tx: Tx, session: StoredSession, archive: StoredArchive, history: str) -> Folder:
    name = archive_id(archive.number)
    uri = below(history, name)
    ended_at = archive.ended_at or archive.created_at

    def children() -> Iterator[File]:
        yield _messages(tx, session, uri, archive.created_at, archive.first_seq, archive.last_seq)
        yield _text(uri, META, ended_at, pretty(archives.info(session, archive)).decode())
        if archive.state == "done":
            diff = MemoryDiff(archive_uri=uri, extracted_at=from_micros(ended_at))
            yield _text(uri, ABSTRACT, ended_at, archive.abstract)
            yield _text(uri, OVERVIEW, ended_at, archive.overview)
            yield _text(uri, MEMORY_DIFF, ended_at, pretty(diff).decode())
            yield _text(uri, DONE, ended_at, pretty({"done_at": from_micros(ended_at)}).decode())
        if archive.state == "failed":
            yield _text(uri, FAILED, ended_at, pretty(archives.info(session, archive).failure).decode())

    return _folder(name, uri, ended_at, children, lambda: archive.abstract)


def _require_few(uri: str, count: int, remedy: str) -> None:
    if count > MAX_LINES:
        raise TooLargeError(
            f"{uri} is too long to be read at once, which is up to {MAX_LINES:,} lines; {remedy}",
            uri=uri,
            most=MAX_LINES,
        )
