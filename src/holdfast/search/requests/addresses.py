"""Addresses of documents: one form for each, and which of them lie below another one."""

from collections.abc import Iterable

from holdfast.errors import InvalidUriError, PermissionDeniedError
from holdfast.model.identity import Principal
from holdfast.model.uris import CALLER, build_uri, parse_uri

USERS, SESSIONS, MEMORIES = "user", "sessions", "memories"
_FRAGMENT = "#"


def parse_address(uri: str) -> tuple[tuple[str, ...], str]:
    """Return the names of an address, and what follows `#`: the number of a message. Raise an error if it is invalid.

    >>> parse_address("viking://session/trip#12")
    (('user', '', 'sessions', 'trip'), '12')
    """
    path, _, fragment = uri.partition(_FRAGMENT)
    names = parse_uri(path)
    if names[:2] in {(USERS, MEMORIES), ("agent", MEMORIES)}:  # the caller's own, without a name
        names = (USERS, CALLER, *names[1:])
    return names, fragment


def canonical_names(names: tuple[str, ...], principal: Principal) -> tuple[str, ...]:
    """Return names with the caller's internal id in place of the caller's name, or of no name."""
    if names[:1] == (USERS,) and len(names) > 1 and names[1] in {CALLER, principal.user_id}:
        return (USERS, principal.internal_id, *names[2:])
    return names


def canonical_address(uri: str, principal: Principal) -> str:
    """Return the one form of an address. Raise `InvalidUriError` if it is invalid.

    >>> alice = Principal("acme", "alice", internal_id="alice~5f3a90")
    >>> canonical_address("viking://~/memories/auth/", alice)
    'viking://user/alice~5f3a90/memories/auth'
    >>> canonical_address("viking://user/alice/sessions/trip#12", alice)
    'viking://user/alice~5f3a90/sessions/trip#12'
    """
    try:
        names, fragment = parse_address(uri)
    except PermissionDeniedError:
        raise InvalidUriError(uri, "has a segment `..`; write the path without it") from None
    return join_address(canonical_names(names, principal), fragment)


def join_address(names: Iterable[str], fragment: str = "") -> str:
    path = build_uri(names)
    return f"{path}{_FRAGMENT}{fragment}" if fragment else path


def is_below(address: str, folder: str) -> bool:
    """Return whether a canonical address is another one, or lies below it.

    >>> is_below("viking://user/ann/sessions/trip#12", "viking://user/ann/sessions/trip")
    True
    >>> is_below("viking://user/anna/sessions/trip", "viking://user/ann")
    False
    """
    rest = address.removeprefix(folder)
    return address == folder or (rest != address and (folder.endswith("/") or rest[:1] in {"/", _FRAGMENT}))
