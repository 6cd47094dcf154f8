"""The attributes of files and folders: their tags, and their relations to others."""

from datetime import datetime
from typing import Literal

import msgspec

from holdfast.model.base import WireStruct

MAX_TAGS = 100
MAX_TAG_CHARS = 200
ContextType = Literal["resource", "skill", "session"]
TagMode = Literal["replace", "append", "clear"]


class AttributeValues(WireStruct, frozen=True):
    tags: list[str]


class Attributes(WireStruct, frozen=True, kw_only=True):
    uri: str
    context_type: ContextType
    attrs: AttributeValues


class TagsSet(WireStruct, frozen=True, kw_only=True):
    uri: str
    updated_uris: list[str]
    """The addresses whose tags changed; of many, the first ones."""
    root_uri: str
    context_type: ContextType
    tags: list[str]
    """The tags that were given."""
    mode: TagMode
    success_count: int
    """How many files and folders have other tags than before."""
    skipped_count: int
    """How many had these tags already."""
    failed_count: int = 0
    tags_updated: bool


class Relation(WireStruct, frozen=True, kw_only=True):
    """A relation to another address."""

    uri: str
    reason: str
    created_at: datetime


class Linked(WireStruct, frozen=True, kw_only=True, rename={"from_uri": "from", "to_uris": "to"}):
    from_uri: str
    to_uris: list[str]


class Unlinked(WireStruct, frozen=True, kw_only=True, rename={"from_uri": "from", "to_uri": "to"}):
    from_uri: str
    to_uri: str


class RelationsFile(msgspec.Struct, frozen=True):
    """Content of `.relations.json` of a stored folder."""

    relations: dict[str, list[Relation]]
    """The relations of the folder and of the files and folders in it, by their addresses."""
