"""Client methods that search what the caller may read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from holdfast.client.sync.transport import Transport
from holdfast.model.search import ContextType, FindResult, SearchResult
from holdfast.ops.search import Find, Search

Time = str | datetime
Texts = str | Sequence[str]
_OTHER_FIELDS = ("filter", "image", "image_url", "search_type", "time_field")


class SessionHandle(Protocol):
    """What a search needs of a `Session`."""

    session_id: str
    owner: str | None


class Searches:
    """Searches of memories, resources, skills, messages and overviews."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def find(
        self,
        query: str,
        target_uri: Texts = "",
        limit: int = 10,
        score_threshold: float | None = None,
        *,
        context_type: Texts | None = None,
        level: int | Sequence[int] | None = None,
        tags: Texts | None = None,
        since: Time | None = None,
        until: Time | None = None,
        as_of: Time | None = None,
        read_content: bool = False,
        **other_fields: Any,
    ) -> FindResult:
        """Find memories, resources and skills, best first: up to `limit` of each. `search` also finds messages.

        - `target_uri`: search only at and below these addresses.
        - `score_threshold`: return only hits with at least this score, from 0 to 1.
        - `context_type`: one or several of `memory`, `resource`, `skill`.
        - `level`: one or several of 0 (abstracts), 1 (overviews), 2 (whole texts).
        - `since`, `until`: an age such as `7d`, a date, or a time. `as_of` is the time that an age, or "yesterday" in
          the query, is relative to; by default now.
        - `read_content`: add the whole text of each hit as `content`.
        - `search_type="keywords"`: compare words alone, and no vectors.
        - `time_field="created_at"`: `since` and `until` limit when a file was created, and not when it was changed.

        A hit on a part of a file has the address of the file as `document`, and its `part`, `title` and `page`.
        `other_fields` are accepted for clients of OpenViking. `notes` says which of them have no effect.
        """
        op = Find(
            query=query,
            target_uri=_as_list(target_uri),
            limit=limit,
            score_threshold=score_threshold,
            context_type=_as_list(context_type),
            level=_as_list(level),
            tags=_as_list(tags),
            since=_as_text(since),
            until=_as_text(until),
            as_of=_as_text(as_of),
            read_content=read_content,
            **_named(other_fields),
        )
        return self._transport.call(op)

    def search(
        self,
        query: str,
        target_uri: Texts = "",
        session: SessionHandle | None = None,
        session_id: str | None = None,
        limit: int = 10,
        score_threshold: float | None = None,
        *,
        session_info: SessionHandle | None = None,
        owner: str | None = None,
        context_type: ContextType | Sequence[ContextType] | None = None,
        level: int | Sequence[int] | None = None,
        tags: Texts | None = None,
        since: Time | None = None,
        until: Time | None = None,
        as_of: Time | None = None,
        read_content: bool = False,
        around: int = 1,
        exclude_uris: Texts = (),
        mode: Literal["list", "context"] = "list",
        max_tokens: int = 2_000,
        **other_fields: Any,
    ) -> SearchResult:
        """Find messages, overviews, memories, resources and skills, best first: up to `limit` of each.

        Each hit has a `score` from 0 to 1, and `reasons` whose shares add up to it. Each message has the `around`
        messages before and after it. `query_plan` says what was searched for.

        - `session_id`, with `owner` if another user shares it, or `session`: a session. Its recent messages complete
          the query: "and the other one?" can be answered.
        - `context_type="message"` searches messages alone.
        - `exclude_uris`: addresses that are not returned.
        - `mode="context"`: also pack the hits into a text of at most `max_tokens`, ready for a prompt, as `rendered`.

        The other parameters are those of `find`. `session_info` is another name of `session`.
        """
        handle = session or session_info
        op = Search(
            query=query,
            target_uri=_as_list(target_uri),
            session_id=session_id if handle is None else handle.session_id,
            owner=owner if handle is None else handle.owner,
            limit=limit,
            score_threshold=score_threshold,
            context_type=_as_list(context_type),
            level=_as_list(level),
            tags=_as_list(tags),
            since=_as_text(since),
            until=_as_text(until),
            as_of=_as_text(as_of),
            read_content=read_content,
            around=around,
            exclude_uris=exclude_uris if isinstance(exclude_uris, str) else list(exclude_uris),
            mode=mode,
            max_tokens=max_tokens,
            **_named(other_fields),
        )
        return self._transport.call(op)


def _as_list(value: Any) -> Any:
    """Return a sequence as a list. Validation rejects what is neither a list nor a single value."""
    return list(value) if isinstance(value, tuple | set | frozenset) else value


def _named(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of OpenViking that have an effect, or a note in the answer."""
    return {name: fields[name] for name in _OTHER_FIELDS if name in fields}


def _as_text(time: Time | None) -> str | None:
    return time.isoformat() if isinstance(time, datetime) else time
