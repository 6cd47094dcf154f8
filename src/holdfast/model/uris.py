"""Parsing and building `viking://` URIs."""

import re
from collections.abc import Iterable

from holdfast.errors import InvalidUriError, PermissionDeniedError, short_repr

SCHEME = "viking://"
SESSION_ALIAS = "session"
"""The first segment that stands for the folder of the caller's sessions."""
HOME = "~"
"""The first segment that stands for the folder of the caller."""
CALLER = ""
"""The user id in a parsed URI that names no user: the caller's own."""
PUBLISHED_SCOPES = frozenset({"agent", "resources", "system", "user", SESSION_ALIAS, HOME})
"""The first segments that the OpenViking API knows. Such a URI is valid, whether or not anything is there."""

USER_FOLDERS = frozenset({"artifacts", "inputs", "memories", "peers", "resources", "sessions", "skills"})
"""The folders of a user. `viking://user/skills` is the folder of the caller, so nobody can have such a name."""
AGENT_FOLDERS = frozenset({"memories", "skills"})
"""Folders that `viking://agent` has in the OpenViking API. Here they are those of the caller."""
MAX_PART_DIGITS = 9
MAX_PATH_BYTES = 1_000
"""The longest path of a stored file, as UTF-8: an index cannot hold longer ones."""

_UNSAFE = re.compile(r"[\x00-\x1f\x7f/%#?]")


def parse_uri(uri: str) -> tuple[str, ...]:
    """Return the decoded path segments of a URI, from the root on. Aliases of the caller's folders are expanded.

    Only the syntax is checked. The tree decides which paths exist. A part of a file or session (`#12`) is left out.

    >>> parse_uri("viking://user/alice/sessions/chat_001/")
    ('user', 'alice', 'sessions', 'chat_001')
    >>> parse_uri("viking://session/chat_001/tools/a%2Fb")
    ('user', '', 'sessions', 'chat_001', 'tools', 'a/b')
    >>> parse_uri("viking://~/sessions"), parse_uri("viking://agent/coder/skills/search")
    (('user', '', 'sessions'), ('user', '', 'skills', 'search'))
    >>> parse_uri("viking://")
    ()
    """
    if not uri.startswith(SCHEME):
        raise InvalidUriError(uri, f"does not begin with {SCHEME}")
    path = uri.removeprefix(SCHEME).partition("#")[0].removesuffix("/")
    segments = path.split("/") if path else []
    if ".." in segments:
        raise PermissionDeniedError(f"{short_repr(uri)} has a segment `..`; write the path without it")
    if {"", "."} & set(segments):
        raise InvalidUriError(uri, "has a segment that is empty or `.`; write the path without it")
    try:
        names = tuple(_decode(segment) for segment in segments)
    except UnicodeDecodeError:
        raise InvalidUriError(uri, "has a percent-escape that is not UTF-8") from None
    return _expand(names)


def _expand(names: tuple[str, ...]) -> tuple[str, ...]:
    """Replace an alias of a folder of the caller by its path."""
    match names:
        case (first, *rest) if first == HOME:
            return ("user", CALLER, *rest)
        case (first, *rest) if first == SESSION_ALIAS:
            return ("user", CALLER, "sessions", *rest)
        case ("user", folder, *rest) if folder in USER_FOLDERS:
            return ("user", CALLER, folder, *rest)
        case ("agent", folder, *rest) if folder in AGENT_FOLDERS:
            return ("user", CALLER, folder, *rest)
        case ("agent", _, folder, *rest) if folder in AGENT_FOLDERS:
            return ("user", CALLER, folder, *rest)
    return names


def part_of(uri: str) -> int | None:
    """Return the number of the part that a URI names, or None.

    >>> part_of("viking://resources/manual.pdf#12"), part_of("viking://resources/manual.pdf")
    (12, None)
    """
    _, sign, number = uri.partition("#")
    if not sign:
        return None
    if not number.isascii() or not number.isdigit() or len(number) > MAX_PART_DIGITS:
        raise InvalidUriError(uri, "does not end in the number of a part after `#`, such as #12")
    return int(number)


def encode_path(names: Iterable[str]) -> str:
    """Return names as a path, encoded as in a URI.

    >>> encode_path(["guides", "a/b", "\u4e2d\u6587 1"])
    'guides/a%2Fb/\u4e2d\u6587 1'
    """
    return "/".join(_encode(name) for name in names)


def decode_path(path: str) -> tuple[str, ...]:
    """Return the names of an encoded path."""
    return tuple(_decode(name) for name in path.split("/")) if path else ()


def build_uri(names: Iterable[str]) -> str:
    """Return the URI of a path.

    >>> build_uri(["user", "alice", "a b"])
    'viking://user/alice/a b'
    """
    uri = SCHEME
    for name in names:
        uri = child_uri(uri, name)
    return uri


def child_uri(uri: str, name: str) -> str:
    """Return the URI of the entry `name` in the folder `uri`.

    >>> child_uri("viking://", "user"), child_uri("viking://user/alice", "a/b"), child_uri("viking://user", "..")
    ('viking://user', 'viking://user/alice/a%2Fb', 'viking://user/%2E%2E')
    """
    return f"{uri}{_encode(name)}" if uri == SCHEME else f"{uri}/{_encode(name)}"


def _encode(name: str) -> str:
    if name in {".", ".."}:
        return name.replace(".", "%2E")
    return _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)


def _decode(name: str) -> str:
    if "%" not in name:
        return name
    # Decode bytes, not characters: one character may be several escapes.
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda match: bytes([int(match[1], 16)]), name.encode()).decode()
