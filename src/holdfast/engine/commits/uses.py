"""Counts the contexts and skills that a session used since its last commit."""

from contextlib import suppress
from functools import cache

from holdfast.errors import InvalidArgumentError, InvalidUriError
from holdfast.model.access import user_name
from holdfast.model.identity import Principal
from holdfast.search.requests.addresses import canonical_address
from holdfast.store.access import user_ids
from holdfast.store.database import Tx
from holdfast.store.tables import archives, usages
from holdfast.store.tables.sessions import StoredSession

MAX_COUNTED = 2_000
"""How many addresses count for one commit: those that were used last."""


def count_uses(tx: Tx, session: StoredSession, number: int, now: int) -> None:
    """Count what was used since the commit before archive `number`, each address once, for the users who used it."""
    for owner_id, used in sorted(_used_since(tx, session, number, now).items()):
        usages.count(tx, owner_id, used)


def count_addresses(tx: Tx, session: StoredSession, number: int, through: int) -> int:
    """Return how many different contexts and skills were used since the commit before archive `number`."""
    used = _used_since(tx, session, number, through)
    return len({uri for addresses in used.values() for uri in addresses})


def _used_since(tx: Tx, session: StoredSession, number: int, through: int) -> dict[str, dict[str, int]]:
    """Return the times of the last uses, by user and by address."""
    after = archives.created_at(tx, session.log_id, number - 1)

    @cache
    def principal_of(author: str) -> Principal | None:
        if author == user_name(session.owner_id):
            return Principal(tx.account, author, internal_id=session.owner_id)
        with suppress(InvalidArgumentError):
            return Principal(tx.account, author, internal_id=user_ids.current(tx, author))
        return None

    used: dict[str, dict[str, int]] = {}
    for author, uri, used_at in usages.used_between(tx, session.log_id, after, through, MAX_COUNTED):
        principal = principal_of(author)
        if principal is not None:
            addresses = used.setdefault(principal.internal_id, {})
            address = _address(uri, principal)
            addresses[address] = max(used_at, addresses.get(address, used_at))
    return used


def _address(uri: str, principal: Principal) -> str:
    """Return the one form of an address. A text that is no address stands for itself, without a slash at its end."""
    try:
        return canonical_address(uri, principal)
    except InvalidUriError:
        return uri.rstrip("/") or uri
