"""Where a search looks: the addresses that a caller gives, as owners, sessions and places of files."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.engine.gate.session_access import grantee_of
from holdfast.engine.recall.files.stored_roots import places_of
from holdfast.engine.recall.retrieval import Target
from holdfast.errors import InvalidUriError
from holdfast.model.access import RIGHT_BITS
from holdfast.model.identity import Principal
from holdfast.model.uris import CALLER, PUBLISHED_SCOPES
from holdfast.search.requests.addresses import SESSIONS, USERS, canonical_names, is_below, join_address, parse_address
from holdfast.store.access import shared_sessions
from holdfast.store.access.grants import Grantee
from holdfast.store.database import Database, Tx
from holdfast.store.tables import lineage, sessions
from holdfast.store.tables.lineage import LogRange
from holdfast.store.tables.sessions import StoredSession

Address = tuple[tuple[str, ...], str]
_OWNER_DEPTH, _SESSION_DEPTH = 2, 4


class Place(msgspec.Struct, frozen=True):
    """An address at and below which a search looks."""

    address: str
    target: Target


def parse_targets(target_uri: str | Sequence[str]) -> list[Address]:
    """Parse the addresses of a search. Empty if it looks everywhere. Raise `InvalidUriError` for an invalid one."""
    uris = [target_uri] if isinstance(target_uri, str) else target_uri
    parsed = [_parse(uri) for uri in uris if uri]
    is_everywhere = any(names in {(), (USERS,)} for names, _ in parsed)
    return [] if is_everywhere else parsed


def _parse(uri: str) -> Address:
    names, fragment = parse_address(uri)
    if names and names[0] not in PUBLISHED_SCOPES:
        raise InvalidUriError(uri, f"does not begin with one of {', '.join(sorted(PUBLISHED_SCOPES))}")
    return names, fragment


class SearchedFork(NamedTuple):
    """A fork that is searched by its address, and the parts of other logs that it has inherited."""

    session: StoredSession
    inherited: list[LogRange]


def find_forks(tx: Tx, principal: Principal, places: Sequence[Place]) -> list[SearchedFork]:
    """Find the forks among some places that the caller may read."""
    found: list[SearchedFork] = []
    for place in places:
        session = find_session(tx, grantee_of(principal), place.target)
        if session is not None and session.fork_seq:
            found.append(SearchedFork(session, lineage.log_ranges(tx, session, last=session.fork_seq)))
    return found


def find_session(tx: Tx, grantee: Grantee, target: Target) -> StoredSession | None:
    """Find the session of a target, if it has one that the grantee may read."""
    if target.session_id is None:
        return None
    if target.owner_id in {None, grantee.internal_id}:
        return sessions.find(tx, grantee.internal_id, target.session_id)
    shared = shared_sessions.find(tx, grantee, target.owner_id or "", target.session_id)
    return shared if shared is not None and shared.rights & RIGHT_BITS["read"] else None


def resolve_targets(db: Database, principal: Principal, addresses: Sequence[Address]) -> list[Place]:
    """Return where to look. A place that does not exist, or that the caller may not read, has no documents."""
    owner_id = principal.internal_id
    if principal.role == "guest" and any(names[1:2] == (CALLER,) for names, _ in addresses):
        owner_id = _owner_of_link(db, principal)
    caller = msgspec.structs.replace(principal, internal_id=owner_id)
    return [_place(principal, canonical_names(names, caller), fragment) for names, fragment in addresses]


def _owner_of_link(db: Database, guest: Principal) -> str:
    """Return the owner of the session that a share link opens. To its guests, that is what `~` means."""
    shared = db.read(
        guest.account_id, lambda tx: shared_sessions.newest_readable(tx, grantee_of(guest), after="", limit=1)
    )
    return shared[0].owner_id if shared else guest.internal_id


def _place(principal: Principal, names: tuple[str, ...], fragment: str) -> Place:
    address = join_address(names, fragment)
    files = places_of(principal, names, fragment)
    if names[0] != USERS:
        return Place(address, Target(has_sessions=False, files=files))
    owner_id = names[1]
    if len(names) >= _SESSION_DEPTH and names[2] == SESSIONS:
        return Place(address, Target(owner_id=owner_id, session_id=names[3]))
    has_sessions = len(names) == _OWNER_DEPTH or names[2:] == (SESSIONS,)
    return Place(address, Target(owner_id=owner_id, has_sessions=has_sessions, files=files))


def is_within_session(place: Place) -> bool:
    """Whether a place is a part of a session, such as one message."""
    names = place.address.removeprefix("viking://").split("/")
    return place.target.session_id is not None and (len(names) > _SESSION_DEPTH or "#" in place.address)


def is_in_places(address: str, places: Sequence[Place]) -> bool:
    """Return whether an address lies in one of the places. Without places, all do."""
    return not places or any(is_below(address, place.address) for place in places)
