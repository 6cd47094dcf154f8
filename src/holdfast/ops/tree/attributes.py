"""Operations on the tags of files and folders, and on relations between them."""

from typing import Annotated

import msgspec

from holdfast.model.tree.attributes import MAX_TAG_CHARS, Attributes, Linked, Relation, TagMode, TagsSet, Unlinked
from holdfast.ops.addresses import Uri
from holdfast.ops.table import Operation, operation

MAX_LINKS = 100
GivenTag = Annotated[str, msgspec.Meta(max_length=MAX_TAG_CHARS)]
GivenTags = Annotated[list[GivenTag], msgspec.Meta(max_length=1_000)]


@operation("GET /fs/attrs")
class ReadAttributes(Operation[Attributes], frozen=True, kw_only=True):
    """Return the tags of a file or a folder."""

    uri: Uri


@operation("POST /fs/attrs/set_tags", audit="{uri} {mode}")
class SetTags(Operation[TagsSet], frozen=True, kw_only=True):
    """Set the tags of a file or a folder: words, or `key=value`."""

    uri: Uri
    tags: Annotated[str, msgspec.Meta(max_length=20_000)] | GivenTags = msgspec.field(default_factory=list)
    """A list, or a text with commas between the tags."""
    mode: TagMode = "replace"
    recursive: bool = False
    """Also set the tags of everything below a folder."""


@operation("GET /relations")
class ListRelations(Operation[list[Relation]], frozen=True, kw_only=True):
    """List the relations of a file, a folder or a session to others that exist."""

    uri: Uri


@operation("POST /relations/link", audit="{from_uri} {to_uris}")
class LinkFiles(Operation[Linked], frozen=True, kw_only=True):
    """Relate an address to others. A relation that exists gets the new reason."""

    from_uri: Uri
    to_uris: Uri | Annotated[list[Uri], msgspec.Meta(min_length=1, max_length=MAX_LINKS)]
    reason: Annotated[str, msgspec.Meta(max_length=2_000)] = ""


@operation("DELETE /relations/link", audit="{from_uri} {to_uri}")
class UnlinkFiles(Operation[Unlinked], frozen=True, kw_only=True):
    """Remove the relation of an address to another one."""

    from_uri: Uri
    to_uri: Uri
