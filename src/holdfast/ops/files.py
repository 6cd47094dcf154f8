"""What can be asked of the `viking://` tree. Its files are views of what is stored; nothing is kept twice."""

from typing import Annotated, Literal

import msgspec

from holdfast.model.files import FileEntry, FilePage
from holdfast.model.uris import SCHEME, SCOPES
from holdfast.ops.table import Operation, operation

_SEGMENT = r"/\.?[A-Za-z0-9_~:@-][A-Za-z0-9._~:@-]*"

Uri = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=2048,
        # It is for the description alone: what is wrong with a URI is said by an error of its own.
        extra_json_schema={"pattern": f"^{SCHEME}(({'|'.join(sorted(SCOPES))})({_SEGMENT})*/?)?$"},
    ),
]
Nodes = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Chars = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
LineOffset = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
LineLimit = Annotated[int, msgspec.Meta(ge=-1, le=10_000, description="use -1 for all of them")]


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What listings have in common."""

    uri: Uri
    simple: bool = False
    """Whether the URIs are enough."""
    output: Literal["agent", "original"] = "agent"
    """The agent's has the abstracts of folders."""
    show_all_hidden: bool = False
    """Whether to show also what begins with a dot."""
    abs_limit: Chars = 256
    """How much of an abstract to show."""
    node_limit: Nodes = 1_000
    offset: Offset = 0
    limit: Nodes | None = None


@operation("GET /fs/ls", bare="entries")
class ListFiles(Listing, Operation[FilePage], frozen=True, kw_only=True):
    """What is in a folder, or all that is below it: entries from `offset` on, no more than `node_limit` and `limit`."""

    recursive: bool = False


@operation("GET /fs/tree", bare="entries")
class ShowTree(Listing, Operation[FilePage], frozen=True, kw_only=True):
    """What is below a folder, `level_limit` levels deep, each folder followed by what is in it."""

    level_limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3


@operation("GET /fs/stat")
class StatFile(Operation[FileEntry], frozen=True, kw_only=True):
    uri: Uri


@operation("GET /content/read")
class ReadFile(Operation[str], frozen=True, kw_only=True):
    """`limit` lines from the one numbered `offset` on, counted from 0; all of them, if `limit` is -1."""

    uri: Uri
    offset: LineOffset = 0
    limit: LineLimit = -1


@operation("GET /content/abstract")
class ReadAbstract(Operation[str], frozen=True, kw_only=True):
    """One line about a session or an archive, once it was summarised."""

    uri: Uri


@operation("GET /content/overview")
class ReadOverview(Operation[str], frozen=True, kw_only=True):
    """What an archive is about; of a session, what all its finished archives are about."""

    uri: Uri
