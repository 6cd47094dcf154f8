"""The results of searches by patterns."""

import msgspec

from holdfast.model.base import WireStruct
from holdfast.model.tree.files import FileEntry


class GrepMatch(WireStruct, frozen=True, kw_only=True, omit_defaults=True):
    """A line that matches a regular expression."""

    uri: str
    line: int
    """The number of the line, from 1."""
    content: str
    """The line. Of a long one, what is around the match, with `…` where it is cut."""
    before: list[str] = msgspec.field(default_factory=list)
    """The lines before it, if requested."""
    after: list[str] = msgspec.field(default_factory=list)
    tags: list[str] = msgspec.field(default_factory=list)
    """The tags of the file, if requested."""


class GrepResult(WireStruct, frozen=True, kw_only=True):
    matches: list[GrepMatch]
    count: int
    match_count: int
    """The same as `count`: published clients read the one or the other."""
    files_scanned: int
    truncated: bool = False
    """Whether there may be more matches: a limit was reached."""
    hint: str = ""
    """Which limit was reached, where, and how to go on."""


class GlobResult(WireStruct, frozen=True, kw_only=True):
    matches: list[str | FileEntry]
    """Addresses, or entries if further fields were requested."""
    count: int
    truncated: bool = False
    """Whether there may be more matches."""
