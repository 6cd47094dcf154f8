"""The folder of the caller's sessions: each session is a folder with its messages, summaries, tools and archives."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import accumulate

from holdfast.engine.gate.session_access import grantee_of
from holdfast.engine.tree.message_lines import BATCH_BYTES, message_lines
from holdfast.engine.tree.nodes import (
    File,
    Folder,
    Node,
    lines_file,
    loaded_file,
    named_folder,
    small_folder,
    text_file,
)
from holdfast.engine.tree.reading import document_lines
from holdfast.engine.tree.tool_nodes import tools_folder
from holdfast.model.access import RIGHT_BITS
from holdfast.model.archives import archive_id, archive_number
from holdfast.model.identity import Principal
from holdfast.model.tree.files import (
    ABSTRACT,
    DONE,
    FAILED,
    HISTORY,
    MEMORY_DIFF,
    MESSAGES,
    META,
    OVERVIEW,
    RELATIONS,
    TOOLS,
    MemoryDiff,
    Use,
)
from holdfast.model.uris import child_uri
from holdfast.session_files import RELATIONS_HEADER, encode_pretty, relation, session_meta
from holdfast.store import read_memory
from holdfast.store.access import shared_sessions
from holdfast.store.checked.archive_rows import StoredArchive
from holdfast.store.database import Tx
from holdfast.store.tables import archives, session_info, usages
from holdfast.store.tables import sessions as store
from holdfast.store.tables.sessions import SessionFilter, StoredSession
from holdfast.store.timestamps import from_micros

PAGE_SIZE = 100


def sessions_folder(tx: Tx, principal: Principal, uri: str) -> Folder:
    """Return the folder of all sessions of the caller, newest first."""
    read_page = partial(store.page, tx, principal.internal_id)
    return _folder_of_sessions(tx, uri, read_page, partial(store.find, tx, principal.internal_id))


def shared_sessions_folder(owner_id: str, tx: Tx, principal: Principal, uri: str) -> Folder:
    """Return the folder of the sessions that a user lets the caller read, newest first."""
    grantee = grantee_of(principal)
    read_page = partial(shared_sessions.readable_page, tx, grantee, owner_id)
    return _folder_of_sessions(tx, uri, read_page, partial(shared_sessions.find, tx, grantee, owner_id))


def _folder_of_sessions(
    tx: Tx,
    uri: str,
    read_page: Callable[[SessionFilter, int], list[StoredSession]],
    find: Callable[[str], StoredSession | None],
) -> Folder:
    newest = read_page(SessionFilter(), 1)

    def children() -> Iterator[Folder]:
        before: int | None = None
        while True:
            page = read_page(SessionFilter(before=before), PAGE_SIZE)
            yield from (_session_folder(tx, session, uri) for session in page)
            if len(page) < PAGE_SIZE:
                return
            before = page[-1].log_id

    def child(name: str) -> Folder | None:
        session = find(name)
        if session is None or not session.rights & RIGHT_BITS["read"]:
            return None
        return _session_folder(tx, session, uri)

    changed_at = newest[0].changed_at if newest else 0
    return Folder(name="sessions", uri=uri, changed_at=changed_at, children=children, child=child)


def _session_folder(tx: Tx, session: StoredSession, sessions_uri: str) -> Folder:
    uri, changed_at = child_uri(sessions_uri, session.session_id), session.changed_at
    latest = cache(lambda: archives.latest_done(tx, session.log_id))

    def rolling_abstract() -> str:
        archive = latest()
        return "" if archive is None else archive.rolling_abstract

    def summary_file(name: str) -> File | None:
        archive = latest()
        if archive is None:
            return None
        text = archive.rolling_abstract if name == ABSTRACT else archive.rolling
        return text_file(uri, name, archive.ended_at or archive.created_at, text)

    def encode_meta() -> str:
        return encode_pretty(session_meta(session_info.read_session_info(tx, session))).decode()

    def messages_file() -> File:
        return _messages_file(tx, session, uri, changed_at, session.live_from, session.last_seq)

    def history() -> Folder | None:
        if not archives.last_number(tx, session.log_id):
            return None
        return _history_folder(tx, session, child_uri(uri, HISTORY))

    builders: dict[str, Callable[[], Node | None]] = {
        ABSTRACT: partial(summary_file, ABSTRACT),
        OVERVIEW: partial(summary_file, OVERVIEW),
        META: lambda: loaded_file(uri, META, changed_at, encode_meta),
        RELATIONS: lambda: lines_file(uri, RELATIONS, changed_at, partial(_relation_lines, tx, session)),
        MESSAGES: messages_file,
        TOOLS: lambda: tools_folder(tx, session, child_uri(uri, TOOLS)),
        HISTORY: history,
    }
    return named_folder(session.session_id, uri, changed_at, builders, rolling_abstract)


def _messages_file(tx: Tx, session: StoredSession, folder: str, changed_at: int, first: int, last: int) -> File:
    return lines_file(folder, MESSAGES, changed_at, lambda offset: message_lines(tx, session, first + offset, last))


def _relation_lines(tx: Tx, session: StoredSession, offset: int) -> Iterator[str]:
    def rows(skip: int) -> Iterator[Use]:
        after: str | None = None
        while sizes := usages.detail_sizes(tx, session.log_id, after, PAGE_SIZE, skip=skip):
            read_memory.require(sizes[0])
            fitting = sum(total <= BATCH_BYTES for total in accumulate(sizes))
            page = usages.read(tx, session.log_id, after, max(1, fitting), skip=skip)
            yield from map(relation, page)
            after, skip = page[-1].id, 0

    return document_lines(RELATIONS_HEADER, rows, offset)


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
        yield text_file(uri, META, ended_at, encode_pretty(archives.info(session, archive)).decode())
        if archive.state == "done":
            diff = MemoryDiff(archive_uri=uri, extracted_at=from_micros(ended_at))
            yield text_file(uri, ABSTRACT, ended_at, archive.abstract)
            yield text_file(uri, OVERVIEW, ended_at, archive.overview)
            yield text_file(uri, MEMORY_DIFF, ended_at, encode_pretty(diff).decode())
            yield text_file(uri, DONE, ended_at, encode_pretty({"done_at": from_micros(ended_at)}).decode())
        if archive.state == "failed":
            yield text_file(uri, FAILED, ended_at, encode_pretty(archives.info(session, archive).failure).decode())

    return small_folder(name, uri, ended_at, children, lambda: archive.abstract)
