"""Which documents a search may return: what its targets mean for the caller's own documents and for shared logs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from holdfast.engine.recall.document_kinds import MESSAGE
from holdfast.engine.recall.owner_tables import OwnerTable
from holdfast.engine.recall.requests.targets import find_session
from holdfast.engine.recall.retrieval import RetrievalRequest, Target
from holdfast.search.documents import Document
from holdfast.store.access.grants import Grantee
from holdfast.store.access.search import readable_documents, text_hits
from holdfast.store.access.search.search_state import SearchState
from holdfast.store.database import Tx
from holdfast.store.tables import lineage
from holdfast.store.tables.lineage import WHOLE_LOG, LogRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


class Scope(NamedTuple):
    """Where a search looks."""

    grantee: Grantee
    is_own: bool
    """Whether the caller's own documents are searched."""
    own_ranges: list[LogRange] | None
    """The parts of own logs that are searched. None for all of them."""
    shared: list[LogRange]
    """The parts of other owners' logs that are searched."""
    stale_logs: list[int]


def resolve(tx: Tx, grantee: Grantee, request: RetrievalRequest, state: SearchState) -> Scope:
    """Find out which logs the targets of a request name, as far as the caller may read them."""
    shared, stale = state.shared, state.stale_logs
    if not request.targets:
        return Scope(grantee, True, None, shared, stale)
    own_ranges: list[LogRange] | None = []
    found: list[LogRange] = []
    for target in request.targets:
        is_own = target.owner_id in {None, grantee.internal_id}
        if not target.has_sessions:
            continue
        if target.session_id is not None:
            ranges = _ranges_of_session(tx, grantee, target)
            found += _intersections(shared, ranges)
            own_ranges = None if own_ranges is None else own_ranges + ranges
        elif is_own:
            own_ranges = None
        else:
            found += _of_owner(tx, grantee, shared, target.owner_id or "")
    is_own = own_ranges is None or bool(own_ranges)
    return Scope(grantee, is_own, own_ranges, list(dict.fromkeys(found)), stale)


def _ranges_of_session(tx: Tx, grantee: Grantee, target: Target) -> list[LogRange]:
    """Return the log ranges of a session, with what it inherited. The last one is its own log, to its end."""
    session = find_session(tx, grantee, target)
    if session is None:
        return []
    inherited = [each for each in lineage.log_ranges(tx, session) if each.log_id != session.log_id]
    return [*inherited, LogRange(session.log_id, 1, WHOLE_LOG)]


def _of_owner(tx: Tx, grantee: Grantee, shared: Sequence[LogRange], owner_id: str) -> list[LogRange]:
    """Return the shared ranges that are read through sessions of an owner."""
    found = readable_documents.sessions_of_documents(tx, grantee, [(each.log_id, each.first) for each in shared])
    return [each for each, session in zip(shared, found, strict=True) if session and session.owner_id == owner_id]


def _intersections(shared: Sequence[LogRange], ranges: Sequence[LogRange]) -> list[LogRange]:
    return [
        LogRange(one.log_id, max(one.first, other.first), min(one.last, other.last))
        for one in shared
        for other in ranges
        if one.log_id == other.log_id and one.first <= other.last and other.first <= one.last
    ]


def is_wanted(scope: Scope, request: RetrievalRequest, document: Document, *, is_own: bool) -> bool:
    """Whether a document that the caller may read is in the targets and within the limits of a request."""
    if request.levels and document.level not in request.levels:
        return False
    if not is_in_time(request, document.created_at):
        return False
    if request.tags and not set(request.tags) <= set(tags_of(document)):
        return False
    if not is_own or scope.own_ranges is None or document.log_id is None:
        return True
    return is_in_ranges(scope.own_ranges, document.log_id, document.number)


def is_in_time(request: RetrievalRequest, created_at: int) -> bool:
    """Whether a time is within the limits of a request."""
    is_early = request.since is not None and created_at < request.since
    return not is_early and (request.until is None or created_at < request.until)


def tags_of(document: Document) -> list[str]:
    """Return the tags of a document; none if its row is damaged, since the index can be made again."""
    try:
        return msgspec.json.decode(document.tags, type=list[str])
    except msgspec.MsgspecError:
        return []


def is_in_ranges(ranges: Sequence[LogRange], log_id: int, seq: int) -> bool:
    return any(each.log_id == log_id and each.first <= seq <= each.last for each in ranges)


def allowed_rows(tx: Tx, scope: Scope, table: OwnerTable, request: RetrievalRequest) -> "Array | None":
    """Return which rows of the caller's own table may be returned, or None for all."""
    if not scope.is_own:
        return np.zeros(len(table.numbers), bool)
    conditions: list[Array] = []
    if scope.own_ranges is not None:
        conditions.append(_in_ranges(table, scope.own_ranges))
    if scope.stale_logs:
        conditions.append(~np.isin(table.logs, scope.stale_logs))
    if request.since is not None:
        conditions.append(table.times >= request.since)
    if request.until is not None:
        conditions.append(table.times < request.until)
    if request.levels:
        conditions.append(np.isin(table.levels, request.levels))
    if request.tags:
        conditions.append(np.isin(table.numbers, text_hits.find_tagged(tx, scope.grantee.internal_id, request.tags)))
    return np.logical_and.reduce(conditions) if conditions else None


def _in_ranges(table: OwnerTable, ranges: Sequence[LogRange]) -> "Array":
    is_message = table.kinds == (table.kind_names.index(MESSAGE) if MESSAGE in table.kind_names else -1)
    found = np.isin(table.logs, [each.log_id for each in ranges if each.last == WHOLE_LOG])
    for each in ranges:
        if each.last != WHOLE_LOG:
            found |= is_message & (table.logs == each.log_id) & (table.seqs >= each.first) & (table.seqs <= each.last)
    return found
