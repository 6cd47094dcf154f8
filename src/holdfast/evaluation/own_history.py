"""A user's own history as a data set: what was used after a message is what a search for the message should find.

For each recorded use of a context, the last user message before it is the query, and the used address is the relevant
document. The message itself and all later ones of its session are not counted as hits. Uses raise documents; since the
use would then help to find itself, the share of use in each score is taken away (leave one out).
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from holdfast.client.sync.client import Client
from holdfast.errors import InvalidUriError
from holdfast.evaluation.model import Ask, Conversation, Dataset, FoundTurn, Question
from holdfast.evaluation.running import MAX_RESULTS
from holdfast.model.identity import Principal
from holdfast.model.messages import Message
from holdfast.model.search import Hit, MessageHit, SearchResult
from holdfast.model.sessions import Usage
from holdfast.search.requests.addresses import canonical_address, is_below

PAGE_SIZE = 100
MAX_HITS = 100
"""Hits that are ranked again without the share of use."""
MAX_QUERY_CHARS = 2_000
CATEGORY = "used"


class RecordedUse(NamedTuple):
    session_id: str
    message: Message
    """The last user message before the use."""
    usage: Usage


def read_history(client: Client) -> Dataset:
    """Read the recorded uses of the caller's own sessions. A use without a user message before it is left out."""
    user = client.whoami().user_id
    questions: list[Question] = []
    left_out = 0
    for session_id in _session_ids(client):
        usages = [usage for usage in _usages(client, session_id) if usage.kind == "context"]
        uses = list(_with_messages(client, session_id, usages)) if usages else []
        left_out += len(usages) - len(uses)
        questions += [_question(use, user) for use in uses]
    conversation = Conversation(name=user, sessions=[], questions=questions)
    return Dataset(name="sessions", conversations=[conversation], left_out=left_out)


def search_as_before(client: Client) -> Ask:
    """Search as if a message were written again, without what came after it and without what uses tell."""
    user = client.whoami().user_id

    def ask(_conversation: Conversation, question: Question) -> list[FoundTurn]:
        result = client.search(question.text, limit=MAX_HITS, as_of=question.asked_at, around=0)
        session_id, _, place = question.id.rpartition("#")
        seq = int(place.partition(".")[0])
        hits = [hit for hit in _hits(result) if not _is_after(hit, session_id, seq)]
        ranked = sorted(hits, key=_score_without_use, reverse=True)[:MAX_RESULTS]
        return [FoundTurn(matching_address(normal_address(hit.uri, user), question.turns), "") for hit in ranked]

    return ask


def normal_address(uri: str, user: str) -> str:
    """Return the one form of an address, or the text itself if it is no address.

    >>> normal_address("viking://session/trip/", "anna")
    'viking://user/anna/sessions/trip'
    """
    try:
        return canonical_address(uri, Principal(user_id=user, internal_id=user))
    except InvalidUriError:
        return uri


def matching_address(address: str, used: tuple[str, ...]) -> str:
    """Return the used address that is the address of a hit or contains it, else the address itself.

    A used session is found with each of its messages.
    """
    return next((each for each in used if is_below(address, each)), address)


def _session_ids(client: Client) -> Iterator[str]:
    cursor: str | None = None
    while True:
        page = client.list_sessions(limit=PAGE_SIZE, cursor=cursor, shared=False)
        yield from (row.session_id for row in page)
        cursor = page.next_cursor
        if cursor is None:
            return


def _usages(client: Client, session_id: str) -> Iterator[Usage]:
    after: str | None = None
    while True:
        page = client.list_usage(session_id, after=after, limit=PAGE_SIZE)
        yield from page
        if len(page) < PAGE_SIZE:
            return
        after = page[-1].id


def _with_messages(client: Client, session_id: str, usages: list[Usage]) -> Iterator[RecordedUse]:
    """Pair each use with the last user message before it."""
    waiting = sorted(usages, key=lambda usage: usage.created_at)
    last: Message | None = None
    for message in [*_user_messages(client, session_id), None]:
        while waiting and (message is None or waiting[0].created_at < message.created_at):
            usage = waiting.pop(0)
            if last is not None:
                yield RecordedUse(session_id, last, usage)
        last = message


def _user_messages(client: Client, session_id: str) -> Iterator[Message]:
    first: int | None = 1
    while first is not None:
        page = client.get_messages(session_id, first, limit=PAGE_SIZE)
        yield from (message for message in page.messages if message.role == "user" and message.text.strip())
        first = page.next_seq


def _question(use: RecordedUse, user: str) -> Question:
    asked_at: datetime = use.usage.created_at
    return Question(
        id=f"{use.session_id}#{use.message.seq}.{use.usage.id}",
        text=use.message.text.strip()[:MAX_QUERY_CHARS],
        category=CATEGORY,
        asked_at=asked_at,
        turns=(normal_address(use.usage.uri, user),),
        sessions=(),
    )


def _hits(result: SearchResult) -> list[Hit | MessageHit]:
    return [*result.memories, *result.resources, *result.skills, *result.messages, *result.overviews]


def _is_after(hit: Hit | MessageHit, session_id: str, seq: int) -> bool:
    return isinstance(hit, MessageHit) and hit.session_id == session_id and hit.seq >= seq


def _score_without_use(hit: Hit | MessageHit) -> float:
    return hit.score - sum(reason.share for reason in hit.reasons if reason.signal == "use")
