"""Packs: their manifest, and what an export and an import have done. `docs/packs.md` describes the format."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from holdfast.model.base import WireStruct
from holdfast.validation import prebuild_decoder

FORMAT = "holdfast-pack"
FORMAT_NUMBER = 1
MANIFEST = "_ovpack/manifest.json"
FILES = "files/"
BLOBS = "_ovpack/blobs/"
SUFFIX = ".ovpack"
BACKUP_NAME = "backup"
OnConflict = Literal["fail", "overwrite", "skip"]
PackKind = Literal["folder", "file", "backup"]

MAX_NODES = 100_000
MAX_ENTRIES = 100_000
"""How many entries the archive may have: files, and earlier versions with other bytes."""
MAX_VERSIONS = 200_000
MAX_VERSIONS_OF_FILE = 1_000
"""How many versions of one file a pack has: the newest ones."""
MAX_RELATIONS = 10_000
MAX_PACK_BYTES = 1 << 30
"""The bytes of all files and versions together."""
MAX_MANIFEST_BYTES = 64 << 20
MAX_NOTE_CHARS = 10_000
MAX_URI_CHARS = 2_048

Path = Annotated[str, msgspec.Meta(max_length=MAX_URI_CHARS)]
ShortText = Annotated[str, msgspec.Meta(max_length=255)]
Note = Annotated[str, msgspec.Meta(max_length=MAX_NOTE_CHARS)]
Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class PackVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a file."""

    version: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    created_at: datetime
    author: ShortText
    change: ShortText
    size: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    sha256: Sha256
    content_type: ShortText


class PackNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file or a folder."""

    path: Path
    """Its names below the top of the pack, encoded as in a URI. Empty for the folder that was exported."""
    is_folder: bool
    tags: Annotated[list[Tag], msgspec.Meta(max_length=100)] = []
    description: Note = ""
    reason: Note = ""
    instruction: Note = ""
    versions: Annotated[list[PackVersion], msgspec.Meta(max_length=MAX_VERSIONS_OF_FILE)] = []
    """The versions of a file, the oldest first. The last one is its content."""


class PackRelation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A relation of a node of the pack to another one, or to an address outside."""

    from_path: Path
    to_path: Path | None = None
    """The path of a node of the pack. None if the relation leads outside."""
    to_uri: Annotated[str, msgspec.Meta(max_length=MAX_URI_CHARS)] = ""
    reason: Note = ""
    author: ShortText = ""
    created_at: datetime


@prebuild_decoder
class PackManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `manifest.json`."""

    format: str
    number: int
    kind: PackKind
    name: ShortText
    uri: Annotated[str, msgspec.Meta(max_length=MAX_URI_CHARS)]
    """The address that was exported."""
    exported_at: datetime
    nodes: list[PackNode]
    relations: Annotated[list[PackRelation], msgspec.Meta(max_length=MAX_RELATIONS)] = []


class PackNodes(WireStruct, frozen=True, kw_only=True):
    """Some nodes of a subtree, as a pack has them."""

    uri: str
    name: str
    is_folder: bool
    listed_at: datetime
    nodes: list[PackNode]
    """In the order of their paths. The path of a file that is listed itself is its name."""
    relations: list[PackRelation]
    """All of the subtree, on the first page only."""
    next_after: str | None = None
    """Pass it as `after` to list the next nodes. None at the end."""


class PackImported(WireStruct, frozen=True, kw_only=True):
    """What an import has done."""

    uri: str
    files: int
    """How many files are new."""
    folders: int
    """How many folders are new."""
    updated: int
    """How many files got another content, as a new version."""
    skipped: int
    """How many files were left as they are."""
    versions: int
    """How many versions were added."""
    relations: int


class PackExported(WireStruct, frozen=True, kw_only=True):
    """A pack that was written to the disk of the client."""

    uri: str
    target: str
    size: int
    files: int
    folders: int
    versions: int


def entry_name(path: str) -> str:
    r"""Return the name of a file in a zip archive. Characters that some systems cannot have in a name are encoded.

    >>> entry_name("a/b:c\\d.md")
    'a/b%3Ac%5Cd.md'
    """
    return path.replace("\\", "%5C").replace(":", "%3A")
