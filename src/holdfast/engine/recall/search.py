"""Finding and searching: what is asked for, what is found, and which of it the caller may read."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

import msgspec

from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler
from holdfast.engine.recall.requests.completion import complete_query
from holdfast.engine.recall.requests.targets import Address, Place, is_within_session, parse_targets, resolve_targets
from holdfast.engine.recall.reranking import rerank
from holdfast.engine.recall.results.context_mode import with_context
from holdfast.engine.recall.results.hits import Located, document_hits, locate, message_hits
from holdfast.engine.recall.results.live_messages import is_message_in, live_ranges
from holdfast.engine.recall.retrieval import Retrieval, RetrievalRequest, retrieve
from holdfast.errors import InvalidArgumentError, InvalidUriError, short_repr
from holdfast.model.identity import Principal
from holdfast.model.search import ContextType, FindResult, Hit, MessageHit, QueryPlan, SearchResult
from holdfast.ops.search import TIME_HINT, Find, FoundKind, Search, SearchedKind
from holdfast.search.query import MAX_QUERY_CHARS, parse_query
from holdfast.search.requests.addresses import canonical_address
from holdfast.search.requests.time_limits import parse_time
from holdfast.storable import storable_json, storable_text
from holdfast.store.database import Tx
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros, to_micros

MAX_RETRIEVED = 2_000
MAX_COPIES = 20
"""How often the query itself may be in the session and still not hide other hits."""
NO_CONTENT = "{} hits have no content, because the answer would be too large; read them one by one"
NO_IMAGES = "images are not compared with each other"
WORD_SEARCHES = frozenset({"keyword", "keywords"})
"""The types of a search that compares no vectors."""
MAX_LIVE = 200
"""How many more documents are ranked if live messages of a session are not returned."""


class CheckedSearch(msgspec.Struct, frozen=True, kw_only=True):
    """A search whose input is valid."""

    query: str
    kinds: list[ContextType]
    targets: list[Address]
    since: int | None
    until: int | None
    time_field: str
    by_words: bool
    levels: list[int]
    tags: list[str]
    now: int
    utc_offset: int
    """What the asker's clock shows more than UTC, in microseconds."""
    notes: list[str]


class PreparedSearch(msgspec.Struct, frozen=True, kw_only=True):
    checked: CheckedSearch
    searched: str
    added: list[str]
    session: StoredSession | None
    """The session that completes the query."""
    places: list[Place]
    retrieval: Retrieval
    notes: list[str]


def _check(context: CallContext, op: Find | Search) -> CheckedSearch:
    storable_json("filter", op.filter)
    query = op.query.strip()
    notes = list(_notes_of_fields(op))
    if not query:
        if op.has_image:
            raise InvalidArgumentError("query", f"is empty, and {NO_IMAGES}; say what to search for in words")
        raise InvalidArgumentError("query", "is empty; say what to search for")
    if len(query) > MAX_QUERY_CHARS:
        query = query[:MAX_QUERY_CHARS]
        notes.append(f"only the first {MAX_QUERY_CHARS:,} characters of the query were searched for")
    tags = _as_list(op.tags)
    texts = {"tags": tags, "target_uri": _as_list(op.target_uri), "exclude_uris": getattr(op, "exclude_uris", [])}
    for name, values in texts.items():
        for value in values:
            storable_text(name, value)
    as_of = _parse_time("as_of", op.as_of, context.now)
    now = context.now if as_of is None else to_micros(as_of)
    since, until = _parse_time("since", op.since, now), _parse_time("until", op.until, now, is_end=True)
    every_kind: tuple[ContextType, ...] = get_args(FoundKind if isinstance(op, Find) else SearchedKind)
    return CheckedSearch(
        query=query,
        kinds=list(dict.fromkeys(_as_list(op.context_type))) or list(every_kind),
        targets=parse_targets(op.target_uri),
        since=None if since is None else to_micros(since),
        until=None if until is None else to_micros(until),
        time_field="created_at" if op.time_field == "created_at" else "changed_at",
        by_words=op.search_type in WORD_SEARCHES,
        levels=sorted(set(_as_list(op.level))),
        tags=tags,
        now=now,
        utc_offset=0 if as_of is None else (as_of.utcoffset() or timedelta()) // timedelta(microseconds=1),
        notes=notes,
    )


def _notes_of_fields(op: Find | Search) -> Iterator[str]:
    """Name the fields of published clients that change nothing."""
    if op.has_image:
        yield f"the image was not compared: {NO_IMAGES}"
    if op.filter:
        yield "`filter` has no effect; use context_type, level, tags, since and until"


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def _parse_time(
    field: Literal["since", "until", "as_of"], text: str | None, now: int, *, is_end: bool = False
) -> datetime | None:
    if text is None:
        return None
    try:
        return parse_time(text.strip(), from_micros(now), is_end=is_end)
    except ValueError:
        raise InvalidArgumentError(field, f"{short_repr(text)} is not a time; {TIME_HINT}") from None


def _prepare(
    resources: EngineResources, principal: Principal, op: Find | Search, checked: CheckedSearch
) -> PreparedSearch:
    """Complete the query, find documents and rank them. The transaction reads those that are returned."""
    completed = complete_query(resources, principal, op, checked.query) if isinstance(op, Search) else None
    searched = checked.query if completed is None else completed.searched
    places = resolve_targets(resources.db, principal, checked.targets)
    excluded = _max_excluded(op, completed.session) if isinstance(op, Search) and completed is not None else 0
    retrieval = retrieve(
        resources,
        principal,
        RetrievalRequest(
            query=searched,
            kinds=checked.kinds,
            limit=_limit(op, excluded, places),
            targets=[place.target for place in places],
            since=checked.since,
            until=checked.until,
            levels=checked.levels,
            tags=checked.tags,
            now=checked.now,
            utc_offset=checked.utc_offset,
            time_field=checked.time_field,
            by_words=checked.by_words,
        ),
    )
    retrieval = rerank(resources, principal.account_id, searched, retrieval)
    return PreparedSearch(
        checked=checked,
        searched=searched,
        added=[] if completed is None else completed.added,
        session=None if completed is None else completed.session,
        places=places,
        retrieval=retrieval,
        notes=[*checked.notes, *([] if completed is None else completed.notes), *retrieval.notes],
    )


def _limit(op: Find | Search, excluded: int, places: Sequence[Place]) -> int:
    """Return how many documents to retrieve. A place within a session is looked for among all that are found there."""
    if any(is_within_session(place) for place in places):
        return MAX_RETRIEVED
    return min(op.max_hits + excluded + MAX_COPIES, MAX_RETRIEVED)


def _max_excluded(op: Search, session: StoredSession | None) -> int:
    """Return how many documents may be found that are not returned."""
    live = min(MAX_LIVE, session.live_count) if session is not None and op.mode == "context" else 0
    return len(op.exclude_uris) + live


def _find(tx: Tx, principal: Principal, op: Find, prepared: PreparedSearch, _context: CallContext) -> FindResult:
    by_kind, _ = _select(tx, principal, op, prepared)
    notes = list(prepared.notes)
    hits: dict[str, list[Hit]] = {}
    for kind in get_args(FoundKind):
        hits[kind], missing = _documents(tx, by_kind, kind, op)
        if missing:
            notes.append(NO_CONTENT.format(missing))
    return FindResult(
        memories=hits["memory"],
        resources=hits["resource"],
        skills=hits["skill"],
        total=sum(map(len, hits.values())),
        notes=notes,
    )


def _search(tx: Tx, principal: Principal, op: Search, prepared: PreparedSearch, context: CallContext) -> SearchResult:
    by_kind, excluded = _select(tx, principal, op, prepared)
    notes = list(prepared.notes)
    words = parse_query(prepared.searched, prepared.checked.now).words
    messages = _messages(tx, by_kind.get("message", []), op, prepared, words)
    shortened = sum(hit.is_shortened for hit in messages)
    if shortened:
        notes.append(f"{shortened} messages are shortened, or messages around them are missing; read the session")
    hits: dict[str, list[Hit]] = {}
    for kind in ("memory", "resource", "skill", "overview"):
        hits[kind], missing = _documents(tx, by_kind, kind, op)
        if missing and op.read_content:
            notes.append(NO_CONTENT.format(missing))
    returned = {hit.uri for hit in messages} | {hit.uri for found in hits.values() for hit in found}
    located = [each for found in by_kind.values() for each in found if each.uri in returned]
    context.signals.opened = _sessions(located, prepared.session)
    result = SearchResult(
        memories=hits["memory"],
        resources=hits["resource"],
        skills=hits["skill"],
        messages=messages,
        overviews=hits["overview"],
        total=len(messages) + sum(map(len, hits.values())),
        query_plan=_plan(prepared, notes),
    )
    if op.mode == "list":
        return result
    return with_context(
        result, op, prepared.session, prepared.retrieval, excluded, words, context.settings.token_counter
    )


def _messages(
    tx: Tx, located: Sequence[Located], op: Search, prepared: PreparedSearch, words: Sequence[str]
) -> list[MessageHit]:
    """Return the messages that were found, without the query itself, which may be the last message of the session."""
    session, query = prepared.session, prepared.checked.query
    extra = MAX_COPIES if session is not None else 0
    hits = message_hits(tx, located[: op.max_hits + extra], op.around, words)
    if session is not None:
        here = (session.owner_id, session.session_id)
        hits = [hit for hit in hits if (hit.owner, hit.session_id) != here or hit.text.strip() != query]
    return hits[: op.max_hits]


def _documents(
    tx: Tx, by_kind: dict[ContextType, list[Located]], kind: ContextType, op: Find | Search
) -> tuple[list[Hit], int]:
    with_content = op.read_content or (isinstance(op, Search) and op.mode == "context")
    return document_hits(tx, by_kind.get(kind, [])[: op.max_hits], with_content=with_content)


def _select(
    tx: Tx, principal: Principal, op: Find | Search, prepared: PreparedSearch
) -> tuple[dict[ContextType, list[Located]], int]:
    """Return the documents to return, best first, by kind, and how many were excluded."""
    excluded = _excluded(principal, op)
    is_for_prompt = isinstance(op, Search) and op.mode == "context"
    in_prompt = live_ranges(tx, prepared.session if is_for_prompt else None)
    by_kind: dict[ContextType, list[Located]] = {}
    excluded_count = 0
    for located in locate(tx, principal, prepared.retrieval.documents, prepared.places):
        if (excluded and _is_excluded(principal, located, excluded)) or is_message_in(located.document, in_prompt):
            excluded_count += 1
            continue
        if located.document.score < (op.score_threshold or 0):
            continue
        by_kind.setdefault(located.document.kind, []).append(located)
    return by_kind, excluded_count


def _is_excluded(principal: Principal, located: Located, excluded: set[str]) -> bool:
    """Whether an address is excluded, or that of its file."""
    uris = [located.uri] if located.file_uri is None else [located.uri, located.file_uri]
    return any(uri in excluded or canonical_address(uri, principal) in excluded for uri in uris)


def _excluded(principal: Principal, op: Find | Search) -> set[str]:
    """Return the addresses that the caller excludes, each in its one form. What is no address excludes nothing."""
    excluded = set[str]()
    for uri in op.exclude_uris if isinstance(op, Search) else ():
        with suppress(InvalidUriError):
            excluded.add(canonical_address(uri, principal))
    return excluded


def _sessions(located: Sequence[Located], completing: StoredSession | None) -> list[StoredSession]:
    """Return the sessions of documents, and the one that completes the query, each once."""
    sessions = [*(each.session for each in located), completing]
    return list({session.log_id: session for session in sessions if session is not None}.values())


def _plan(prepared: PreparedSearch, notes: Sequence[str]) -> QueryPlan:
    return QueryPlan(
        query=prepared.checked.query,
        added=prepared.added,
        searched=prepared.searched,
        kinds=prepared.checked.kinds,
        times=prepared.retrieval.times,
        notes=list(notes),
    )


HANDLERS: dict[type, OperationHandler] = {
    Find: OperationHandler(_find, check=_check, prepare=_prepare),
    Search: OperationHandler(_search, check=_check, prepare=_prepare),
}
