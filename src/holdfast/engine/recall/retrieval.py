"""Finds and ranks the documents that a caller may read."""

import msgspec

from holdfast import lazy
from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.model.identity import Principal
from holdfast.model.search import ContextType, Reason, SearchedTime


class FilePlace(msgspec.Struct, frozen=True):
    """A file or folder, and all below it, or a part of a file."""

    root: str
    path: str
    """Empty for everything in the root."""
    part: int | None = None


class Target(msgspec.Struct, frozen=True):
    """Where to search. Without one, everything that the caller may read is searched."""

    owner_id: str | None = None
    """The internal id of the owner of the documents."""
    session_id: str | None = None
    """The session of the documents. It needs an owner."""
    has_sessions: bool = True
    """Whether sessions of the owner are searched, and not only files."""
    files: list[FilePlace] = []
    """Where stored files are searched."""


class RetrievalRequest(msgspec.Struct, frozen=True, kw_only=True):
    query: str
    """What to search for, completed from the session if there is one."""
    kinds: list[ContextType]
    limit: int
    """How many documents of each kind to return."""
    targets: list[Target]
    """Where to search; empty for everywhere."""
    since: int | None
    """Documents of this time and later, in microseconds."""
    until: int | None
    """Documents before this time."""
    levels: list[int]
    tags: list[str]
    now: int
    """The time that expressions such as "yesterday" are relative to, in microseconds."""
    utc_offset: int = 0
    """What the asker's clock shows more than UTC, in microseconds."""
    time_field: str = "changed_at"
    """Which time of a file `since` and `until` limit."""
    by_words: bool = False
    """Whether documents are found by their words alone."""


class DocumentText(msgspec.Struct, frozen=True):
    abstract: str
    content: str
    title: str | None = None
    page: int | None = None


class RankedDocument(msgspec.Struct, frozen=True, kw_only=True):
    kind: ContextType
    owner_id: str
    log_id: int | None
    content_id: int | None = None
    """The content of the stored file or folder that it is a part of."""
    number: int
    """The sequence number of a message, the number of the archive of an overview, or the part of a file."""
    level: int
    tags: list[str]
    created_at: int
    score: float
    reasons: list[Reason]

    @property
    def key(self) -> "DocumentKey":
        return self.kind, self.log_id or self.content_id or 0, self.number


DocumentKey = tuple[str, int, int]
"""The kind of a document, its log or content, and its number there."""


class Retrieval(msgspec.Struct, frozen=True, kw_only=True):
    documents: list[RankedDocument]
    """Best first."""
    times: list[SearchedTime]
    notes: list[str]
    searched: int
    """How many documents could have been found."""
    candidates: int
    """How many of them were ranked."""


def retrieve(resources: EngineResources, principal: Principal, request: RetrievalRequest) -> Retrieval:
    """Find and rank documents. It reads the database and may embed the query: call it outside a transaction."""
    found: Retrieval = lazy.load("holdfast.engine.recall.document_search").search(resources, principal, request)
    return found
