"""Operations that search the tree by patterns: lines of files, and names."""

from typing import Annotated

import msgspec

from holdfast.model.tree.patterns import GlobResult, GrepResult
from holdfast.ops.addresses import Uri
from holdfast.ops.search import TargetUri
from holdfast.ops.table import Operation, operation
from holdfast.ops.tree.files import NodeLimit

Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
ContextLines = Annotated[int, msgspec.Meta(ge=0, le=20)]
Words = Annotated[list[Annotated[str, msgspec.Meta(max_length=200)]], msgspec.Meta(max_length=100)]


@operation("POST /search/grep", role="guest", answer="bounded", reads=True)
class Grep(Operation[GrepResult], frozen=True, kw_only=True):
    """Find the lines that match a regular expression in a file, or in all files below a folder or session."""

    uri: Uri
    pattern: Pattern
    """A regular expression without look-around and backreferences. `^` and `$` match at each line."""
    case_insensitive: bool = False
    node_limit: NodeLimit = 256
    """The maximum number of matches."""
    level_limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 10
    """How many levels of folders to search."""
    exclude_uri: TargetUri | None = None
    """Leave out what is at this address and below it."""
    before_context: ContextLines = 0
    """How many lines before each match to return."""
    after_context: ContextLines = 0
    tags: str | Words | None = None
    """Search only files with all these tags."""
    include_tags: bool = False


@operation("POST /search/glob", role="guest", answer="bounded", reads=True)
class Glob(Operation[GlobResult], frozen=True, kw_only=True):
    """Find files and folders by a pattern of their paths below a folder.

    `*` and `?` match in a name, `**` any number of folders; `[a-z]` is one character and `{a,b}` one of two texts.
    Names that begin with a dot are found if the pattern has a name that begins with a dot.
    """

    pattern: Pattern
    """It may begin with `viking://`: then `uri` has no effect."""
    uri: Uri = "viking://"
    node_limit: NodeLimit = 256
    extra_fields: str | Words | None = None
    """Return entries with these fields instead of addresses."""
    tags: str | Words | None = None
    """Find only what has all these tags."""
    include_tags: bool = False
    """Return entries with their tags instead of addresses."""
