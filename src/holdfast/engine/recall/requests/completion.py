"""Completes the query of a search from the recent messages of a session, with the model if there is one."""

import msgspec

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.engine.gate.session_access import SessionOperation, find_readable
from holdfast.engine.recall.requests import model_answers
from holdfast.errors import FailedPreconditionError
from holdfast.model.identity import Principal
from holdfast.ops.search import Search
from holdfast.search.requests.completion import (
    MAX_TURNS,
    Turn,
    complete_by_rule,
    completion_prompt,
    parse_answer,
    stands_alone,
)
from holdfast.search.results.recalled import is_recalled, without_recalled
from holdfast.store.database import Tx
from holdfast.store.tables import archives, lineage, messages
from holdfast.store.tables.sessions import StoredSession

MAX_TURN_BYTES = 64 * 1024
"""Larger messages are not read: they are mostly pasted output of programs."""


class RecentTurns(msgspec.Struct, frozen=True):
    session: StoredSession
    turns: list[Turn]
    overview: str
    """The overview of the latest archive of the session, for a model."""
    abstract: str
    """The abstract of the session's archives, for the rules: headings of an overview are no words to search for."""


class CompletedQuery(msgspec.Struct, frozen=True):
    searched: str
    added: list[str]
    notes: list[str]
    session: StoredSession | None = None
    """The session that the query was completed from."""


class _SessionNamed(msgspec.Struct, frozen=True):
    session_id: str
    owner: str | None


def complete_query(resources: EngineResources, principal: Principal, op: Search, query: str) -> CompletedQuery:
    """Complete a query from the session that the search names. A session that cannot be read changes nothing."""
    if op.session_id is None:
        return CompletedQuery(query, [], [])
    named = _SessionNamed(op.session_id, op.owner)
    recent = resources.db.read(principal.account_id, lambda tx: _read_recent(tx, principal, named))
    if recent is None:
        return CompletedQuery(query, [], [f"the session {op.session_id} has no messages that can complete the query"])
    if stands_alone(query):
        return CompletedQuery(query, [], [], recent.session)
    by_model, notes = _ask_model(resources, query, recent)
    if by_model is not None:
        known = {word.lower() for word in query.split()}
        added = [word for word in by_model.split() if word.lower() not in known]
        return CompletedQuery(by_model, added, notes, recent.session)
    completion = complete_by_rule(query, recent.turns, recent.abstract)
    return CompletedQuery(completion.searched, completion.added, notes, recent.session)


def _read_recent(tx: Tx, principal: Principal, named: SessionOperation) -> RecentTurns | None:
    """Read the last messages of a session, or return None if the caller may not read it."""
    session = find_readable(tx, principal, named)
    if session is None:
        return None
    turns: list[Turn] = []
    for log_range in lineage.log_ranges(tx, session, max(1, session.last_seq - MAX_TURNS)):
        seqs = list(range(log_range.first, log_range.last + 1))
        sizes = messages.sizes(tx, log_range.log_id, seqs)
        short = [seq for seq in seqs if sizes.get(seq, 0) <= MAX_TURN_BYTES]
        turns += [
            Turn(message.role, without_recalled(message.text), message.peer_id or "")
            for message in messages.read_seqs(tx, log_range.log_id, short)
            if not message.damaged and not is_recalled(message)
        ]
    latest = archives.latest_done(tx, session.log_id)
    if latest is None:
        return RecentTurns(session, turns, "", "")
    return RecentTurns(session, turns, latest.overview, latest.rolling_abstract)


def _ask_model(resources: EngineResources, query: str, recent: RecentTurns) -> tuple[str | None, list[str]]:
    """Return the query that the model completed, or None with a note that says why there is none."""
    seconds = resources.settings.query_model_seconds
    if not seconds or resources.settings.model_provider == "none":
        return None, []
    try:
        model = resources.models.language_model
        if model is None:
            return None, []
        answer = model_answers.ask(model, completion_prompt(query, recent.turns, recent.overview), seconds)
    except (model_answers.NoAnswerError, FailedPreconditionError) as error:
        return None, [f"the query was completed by rules: {error}"]
    completed = parse_answer(answer, query, [recent.overview, *(turn.text for turn in recent.turns)])
    if completed is None:
        return None, ["the query was completed by rules: the answer of the model was not a query"]
    return completed, []
