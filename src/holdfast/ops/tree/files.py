"""Operations that list and read the `viking://` tree."""

from typing import Annotated, Literal, Self

import msgspec
from msgspec.structs import replace

from holdfast.model.tree.files import FileEntry, FilePage, SortKey
from holdfast.ops.addresses import Uri
from holdfast.ops.table import Operation, operation

NodeLimit = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
AbstractChars = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
LineOffset = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
LineLimit = Annotated[int, msgspec.Meta(ge=-1, le=10_000, description="use -1 for all lines")]
Version = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
CharOffset = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
CharLimit = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that all listings have."""

    uri: Uri
    simple: bool = False
    """Return only URIs."""
    output: Literal["agent", "original"] = "agent"
    """`agent` includes the abstracts of folders."""
    show_all_hidden: bool = False
    """Include names that begin with a dot."""
    abs_limit: AbstractChars = 256
    """The maximum length of an abstract."""
    node_limit: NodeLimit = 1_000
    offset: Offset = 0
    limit: NodeLimit | None = None
    include_abstract: bool = False
    """Add the abstracts of files, too."""
    include_overview: bool = False
    overview_limit: AbstractChars = 4_000
    """The maximum length of an overview."""
    extra_fields: str | list[str] | None = None
    """`count` adds the numbers of entries of folders. Other fields are always there if they are known."""
    tags: str | list[str] | None = None
    """List only entries with all these tags."""
    include_tags: bool = False
    """Add the tags of each entry, also if it has none."""

    @property
    def max_entries(self) -> int:
        return self.node_limit if self.limit is None else min(self.limit, self.node_limit)

    def following(self, page: FilePage) -> Self | None:
        count = len(page.entries)
        left = self.max_entries - count
        return replace(self, offset=self.offset + count, limit=left) if page.has_more and left > 0 else None

    def join(self, page: FilePage, next_page: FilePage) -> FilePage:
        return replace(next_page, entries=page.entries + next_page.entries)


@operation("GET /fs/ls", role="guest", result_field="entries", answer="paged")
class ListFiles(Listing, Operation[FilePage], frozen=True, kw_only=True):
    """List the entries of a folder, or of its whole subtree: from `offset`, at most `node_limit` and `limit`."""

    recursive: bool = False
    sort_by: SortKey | None = None
    """The default is the order of the folder: by name, and sessions by their creation."""
    sort_order: Literal["asc", "desc"] = "asc"


@operation("GET /fs/tree", role="guest", result_field="entries", answer="paged")
class ShowTree(Listing, Operation[FilePage], frozen=True, kw_only=True):
    """List the subtree of a folder, `level_limit` levels deep. The entries of each folder follow it."""

    level_limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    directories_only: bool = False


@operation("GET /fs/stat", role="guest")
class StatFile(Operation[FileEntry], frozen=True, kw_only=True):
    """Return the entry of a file or a folder."""

    uri: Uri


@operation("GET /content/read", role="guest", answer="streamed")
class ReadFile(Operation[str], frozen=True, kw_only=True):
    """Read `limit` lines of a file from line `offset`, counted from 0. A `limit` of -1 reads all lines.

    `char_offset` and `char_limit` select characters of these lines, so that a long line can be read in parts.
    """

    uri: Uri
    offset: LineOffset = 0
    limit: LineLimit = -1
    char_offset: CharOffset = 0
    char_limit: CharLimit | None = None
    version: Version | None = None
    """A version of a stored file; the default is the current one."""
    raw: bool = False
    """Accepted for published clients: a file is always returned as it is stored."""


@operation("GET /content/abstract", role="guest")
class ReadAbstract(Operation[str], frozen=True, kw_only=True):
    """Return the one-line summary of a file or a folder."""

    uri: Uri


@operation("GET /content/overview", role="guest")
class ReadOverview(Operation[str], frozen=True, kw_only=True):
    """Return the overview of a file or a folder: for a session, that of all its finished archives."""

    uri: Uri
