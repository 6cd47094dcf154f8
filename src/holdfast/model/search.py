"""What a search returns: hits with their reasons, and how the query was understood."""

from datetime import datetime
from typing import Literal

from msgspec import field

from holdfast.model.base import WireStruct
from holdfast.model.messages import Message

ContextType = Literal["memory", "resource", "skill", "message", "overview"]
Signal = Literal[
    "words",
    "previous",
    "meaning",
    "neighbours",
    "speaker",
    "role",
    "time",
    "name",
    "recency",
    "use",
    "kind",
    "folder",
    "rerank",
]
"""Why a document was found:

- `words`: words of the query, or similar ones, occur in it or next to it; `previous`: the turn before asks about them;
  `neighbours`: they occur in the turns around it, or elsewhere in its session.
- `meaning`: its vector is close to that of the query.
- `speaker`: the query names who wrote it; `name`: a name of the query occurs in it; `role`: who usually states facts.
- `time`: it is of, or names, the time of the query; `recency`: it is new; `use`: it was used before.
- `kind`: it is long, is no question, or follows a short turn; `folder`: the overview of a folder above it matches;
  `rerank`: the rerank service preferred it.
"""


class Reason(WireStruct, frozen=True):
    signal: Signal
    share: float
    """How much of the score it explains. The shares of a hit add up to its score."""


class Hit(WireStruct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory, a resource, a skill or an overview that was found."""

    context_type: ContextType
    uri: str
    level: int
    score: float
    abstract: str
    tags: list[str]
    created_at: datetime
    reasons: list[Reason]
    content: str | None = None
    """The whole text, if it was asked for."""
    document: str | None = None
    """Of a part of a file: the address of the file."""
    part: int | None = None
    """The number of the part, from 1."""
    title: str | None = None
    """The headings of the part, from the outermost one on."""
    page: int | None = None
    """The page on which the part begins."""


class MessageHit(WireStruct, frozen=True, kw_only=True):
    """A message that was found."""

    context_type: ContextType = "message"
    uri: str
    level: int = 2
    session_id: str
    owner: str
    """The owner of the session, as its address names it."""
    seq: int
    score: float
    reasons: list[Reason]
    message: Message
    around: list[Message]
    """The messages before and after it, in order, without the message itself."""
    is_shortened: bool = False
    """Whether its text is shortened or messages around it are missing, because an answer has a maximum size.

    `get_messages` returns them whole.
    """

    @property
    def text(self) -> str:
        return self.message.text


class SearchedTime(WireStruct, frozen=True):
    """A time expression of the query."""

    text: str
    since: datetime
    until: datetime


class QueryPlan(WireStruct, frozen=True, kw_only=True):
    """How a query was understood, and what was searched."""

    query: str
    """What was asked."""
    added: list[str]
    """What was added to it from the session."""
    searched: str
    """What was searched for."""
    kinds: list[ContextType]
    times: list[SearchedTime]
    notes: list[str]
    """What could not be done, such as a model that did not answer."""


class FindResult(WireStruct, frozen=True, kw_only=True, omit_defaults=True):
    memories: list[Hit]
    resources: list[Hit]
    skills: list[Hit]
    total: int
    notes: list[str] = field(default_factory=list)
    """What could not be done, or was done in another way than usual."""


class RecalledEntry(WireStruct, frozen=True, kw_only=True):
    """An entry of a text for a prompt."""

    uri: str
    category: ContextType
    score: float
    detail: Literal["full", "shortened"]
    text: str
    origin: Literal["found", "around"]
    """`around`: it was not found itself, but comes directly before or after a message that was."""
    created_at: datetime


class RecallStats(WireStruct, frozen=True, kw_only=True):
    """The receipt of a text for a prompt: how many hits there were, and what was left out."""

    searched: int
    """How many documents could have been found."""
    candidates: int
    """How many of them were ranked."""
    excluded: int
    """Hits that the caller excluded, or that the session of the search shows to its model anyway."""
    max_tokens: int
    used_tokens: int
    returned: int
    dropped: int
    """Hits that did not fit."""
    deduped: int
    """Hits with the text of another one."""
    shortened: int
    """Entries that are shortened, so that they fit."""
    left_out: list[str]
    """The addresses of hits that did not fit."""


class SearchResult(WireStruct, frozen=True, kw_only=True, omit_defaults=True):
    memories: list[Hit]
    resources: list[Hit]
    skills: list[Hit]
    messages: list[MessageHit]
    overviews: list[Hit]
    total: int
    query_plan: QueryPlan
    entries: list[RecalledEntry] = field(default_factory=list)
    """With `mode="context"`: the hits that fit into the token budget, oldest first."""
    rendered: str | None = None
    """With `mode="context"`: the entries as one text for a prompt."""
    stats: RecallStats | None = None
    """With `mode="context"`: what was left out, and why."""


def message_uri(session: str, seq: int) -> str:
    """Return the address of a message, from that of its session. Summaries cite it as `#12`, too.

    >>> message_uri("viking://user/alice/sessions/trip", 12)
    'viking://user/alice/sessions/trip#12'
    """
    return f"{session}#{seq}"
