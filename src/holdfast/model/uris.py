"""Parsing and building `viking://` URIs."""

import re
from collections.abc import Iterable

from holdfast.errors import InvalidUriError

SCHEME = "viking://"
SESSION_ALIAS = "session"
"""The first segment that stands for the folder of the caller's sessions."""
HOME = "~"
"""The first segment that stands for the folder of the caller."""
CALLER = ""
"""The user id in a parsed URI that names no user: the caller's own."""
PUBLISHED_SCOPES = frozenset({"agent", "resources", "system", "user", SESSION_ALIAS, HOME})
"""The first segments that the OpenViking API knows. Such a URI is valid, whether or not anything is there."""

_UNSAFE = re.compile("[^A-Za-z0-9._~:@-]")


def parse_uri(uri: str) -> tuple[str, ...]:
    """Return the decoded path segments of a URI, from the root on. `viking://session` and `viking://~` are expanded.

    Only the syntax is checked. The tree decides which paths exist.

    >>> parse_uri("viking://user/alice/sessions/chat_001/")
    ('user', 'alice', 'sessions', 'chat_001')
    >>> parse_uri("viking://session/chat_001/tools/a%2Fb")
    ('user', '', 'sessions', 'chat_001', 'tools', 'a/b')
    >>> parse_uri("viking://~/sessions")
    ('user', '', 'sessions')
    >>> parse_uri("viking://")
    ()
    """
    if not uri.startswith(SCHEME):
        raise InvalidUriError(uri, f"does not begin with {SCHEME}")
    path = uri.removeprefix(SCHEME).removesuffix("/")
    segments = path.split("/") if path else []
    if {"", ".", ".."} & set(segments):
        raise InvalidUriError(uri, "has a segment that is empty, . or ..; write the path without it")
    try:
        names = tuple(_decode(segment) for segment in segments)
    except UnicodeDecodeError:
        raise InvalidUriError(uri, "has a percent-escape that is not UTF-8") from None
    if names[:1] == (HOME,):
        return ("user", CALLER, *names[1:])
    return ("user", CALLER, "sessions", *names[1:]) if names[:1] == (SESSION_ALIAS,) else names


def build_uri(names: Iterable[str]) -> str:
    """Return the URI of a path.

    >>> build_uri(["user", "alice", "a b"])
    'viking://user/alice/a%20b'
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
