"""Operations that search what a caller may read."""

from typing import Annotated, Any, Literal

import msgspec

from holdfast.model.access import Owner
from holdfast.model.base import Name
from holdfast.model.search import FindResult, SearchResult
from holdfast.ops.addresses import URI_PATTERN
from holdfast.ops.table import Operation, operation

MAX_URIS = 1_000
Query = Annotated[
    str,
    msgspec.Meta(
        max_length=200_000,
        description="say what to search for",
        extra_json_schema={"pattern": r"^[^\u0000]*[^\s\u0000][^\u0000]*$"},  # only for the schema
    ),
]
TargetUri = Annotated[
    str,
    msgspec.Meta(
        max_length=2048,
        # Only for the schema. Invalid URIs raise an error of their own, which gives the reason.
        extra_json_schema={"pattern": f"^$|{URI_PATTERN}"},
    ),
]
ExcludedUri = Annotated[str, msgspec.Meta(max_length=2048)]
HitLimit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Score = Annotated[float, msgspec.Meta(ge=0, le=1)]
Level = Literal[0, 1, 2]
Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
ShortText = Annotated[str, msgspec.Meta(max_length=64)]
FoundKind = Literal["memory", "resource", "skill"]
SearchedKind = Literal["memory", "resource", "skill", "message", "overview"]
TIME_HINT = "use an age such as 7d, 12h or 2w, a date such as 2026-03-24, or ISO 8601"
Time = Annotated[
    str,
    msgspec.Meta(
        max_length=64,
        extra_json_schema={
            "description": "An age such as 7d, 12h or 2w, a date, or a date and time.",
            "anyOf": [{"pattern": "^[0-9]{1,4}[hdw]$"}, {"format": "date"}, {"format": "date-time"}],
        },
    ),
]


class SearchFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that both searches have. Fields that are not listed are accepted and have no effect."""

    query: Query
    target_uri: TargetUri | Annotated[list[TargetUri], msgspec.Meta(max_length=MAX_URIS)] = ""
    """Search only at and below these addresses. Empty for everything that the caller may read."""
    limit: HitLimit = 10
    """How many hits of each kind to return."""
    node_limit: HitLimit | None = None
    """Another name of `limit`."""
    score_threshold: Score | None = None
    """Return only hits with at least this score."""
    level: Level | list[Level] | None = None
    """0 for abstracts, 1 for overviews, 2 for whole texts."""
    tags: Tag | Annotated[list[Tag], msgspec.Meta(max_length=100)] | None = None
    """Return only hits with all these tags."""
    since: Time | None = None
    until: Time | None = None
    as_of: Time | None = None
    """The time that "yesterday" or "7d" is relative to. The default is now."""
    read_content: bool = False
    """Add the whole text of each hit."""
    search_type: ShortText | None = None
    """`keywords` to find by words alone. With any other value, by words and by meaning."""
    time_field: ShortText | None = None
    """`created_at`: `since` and `until` limit when a file was created, and not when it was changed."""
    filter: Any = None
    """Accepted for published clients. A note says that it has no effect."""
    include_provenance: bool | None = None
    """Accepted for published clients. Hits always say which document they are a part of."""
    image_url: str | None = None
    """Images are not compared. With a query, a note says so; without one, it is an error."""
    image: str | None = None
    """Another name of `image_url`."""

    @property
    def has_image(self) -> bool:
        return bool(self.image_url or self.image)

    @property
    def max_hits(self) -> int:
        return self.limit if self.node_limit is None else self.node_limit


@operation("POST /search/find", role="guest", answer="bounded", reads=True)
class Find(SearchFields, Operation[FindResult], frozen=True, kw_only=True):
    """Find memories, resources and skills, best first. Messages are found by a search."""

    context_type: FoundKind | list[FoundKind] | None = None


@operation("POST /search/search", role="guest", answer="bounded", reads=True)
class Search(SearchFields, Operation[SearchResult], frozen=True, kw_only=True):
    """Find memories, resources, skills, messages and overviews, best first, with the reasons of each hit.

    With `session_id`, the query is completed from the recent messages of that session. With `mode="context"`, the
    hits are also packed into one text for a prompt.
    """

    context_type: SearchedKind | list[SearchedKind] | None = None
    session_id: Name | None = None
    owner: Owner | None = None
    """The owner of the session, if another user shares it."""
    around: Annotated[int, msgspec.Meta(ge=0, le=5)] = 1
    """How many messages before and after each found message to return."""
    exclude_uris: ExcludedUri | Annotated[list[ExcludedUri], msgspec.Meta(max_length=MAX_URIS)] = msgspec.field(
        default_factory=list
    )
    """Addresses that are not returned, such as what the prompt has already. One address becomes a list."""
    mode: Literal["list", "context"] = "list"
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 2_000
    """With `mode="context"`: the size of the text."""

    def __post_init__(self) -> None:
        if isinstance(self.exclude_uris, str):
            msgspec.structs.force_setattr(self, "exclude_uris", [self.exclude_uris] if self.exclude_uris else [])
