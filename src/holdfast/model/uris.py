"""`viking://` URIs: how a place in the tree is written."""

import re

from holdfast.errors import InvalidUriError

SCHEME = "viking://"
SCOPES = frozenset({"user", "agent", "resources", "session", "system", "temp"})
CALLER = ""
"""Stands where the user's name would, if a URI leaves it to the caller."""

_UNSAFE = re.compile("[^A-Za-z0-9._~:@-]")


def segments(uri: str) -> tuple[str, ...]:
    """The names that a URI leads through, from the root on. The alias `viking://session` is spelled out.

    >>> segments("viking://user/alice/sessions/chat_001/")
    ('user', 'alice', 'sessions', 'chat_001')
    >>> segments("viking://session/chat_001/tools/a%2Fb")
    ('user', '', 'sessions', 'chat_001', 'tools', 'a/b')
    >>> segments("viking://")
    ()
    """
    if not uri.startswith(SCHEME):
        raise InvalidUriError(uri, f"does not begin with {SCHEME}")
    told = uri.removeprefix(SCHEME).removesuffix("/")
    written = told.split("/") if told else []
    if {"", ".", ".."} & set(written):
        raise InvalidUriError(uri, "has a segment that is empty or made of dots; write every name out")
    try:
        names = tuple(_decoded(name) for name in written)
    except UnicodeDecodeError:
        raise InvalidUriError(uri, "has an escape that is not UTF-8") from None
    if names and names[0] not in SCOPES:
        known = ", ".join(sorted(SCOPES))
        raise InvalidUriError(uri, f"begins with {names[0]!r}, which is no scope; use one of {known}")
    return ("user", CALLER, "sessions", *names[1:]) if names[:1] == ("session",) else names


def below(uri: str, name: str) -> str:
    """The URI of what is called `name` in the folder `uri`.

    >>> below("viking://", "user"), below("viking://user/alice", "a/b"), below("viking://user", "..")
    ('viking://user', 'viking://user/alice/a%2Fb', 'viking://user/%2E%2E')
    """
    return f"{uri}{_encoded(name)}" if uri == SCHEME else f"{uri}/{_encoded(name)}"


def _encoded(name: str) -> str:
    if name in {".", ".."}:
        return name.replace(".", "%2E")
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), name)


def _decoded(name: str) -> str:
    if "%" not in name:
        return name
    # By bytes: a character may be several escapes.
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), name.encode()).decode()
