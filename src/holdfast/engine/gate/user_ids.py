"""Finds the internal ids of callers who are known by name, with a cache of recent ones."""

import time
from collections.abc import Callable

from msgspec.structs import replace

from holdfast.model.identity import OPERATOR, Principal
from holdfast.store.access import user_ids
from holdfast.store.database import Database

MAX_CACHED = 10_000


class UserIds:
    """The internal ids of users by account and name. Thread-safe.

    A name gets another internal id when its user is removed. This process sees that at once, others after
    `cache_seconds`, as with revoked keys.
    """

    def __init__(self, db: Database, cache_seconds: float, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._cache_seconds = cache_seconds
        self._elapsed = elapsed
        self._version = 0
        self._cache: dict[Principal, tuple[Principal, float]] = {}
        """Principals with their internal ids, by those without, and until when each is used."""

    def is_known(self, principal: Principal) -> bool:
        """Whether `resolve` needs no database access."""
        return bool(principal.internal_id) or self._cached(principal) is not None or principal == OPERATOR

    def resolve(self, principal: Principal) -> Principal:
        """Return the principal with its internal id."""
        if principal.internal_id:
            return principal
        return self._cached(principal) or self._read(principal)

    def clear(self) -> None:
        """Forget the cached ids. Called after a change of users."""
        self._version += 1
        self._cache.clear()

    def _cached(self, principal: Principal) -> Principal | None:
        found = self._cache.get(principal)
        return found[0] if found is not None and self._elapsed() < found[1] else None

    def _read(self, principal: Principal) -> Principal:
        if principal == OPERATOR:
            return principal
        version = self._version
        internal_id = self._db.read(principal.account_id, lambda tx: user_ids.current(tx, principal.user_id))
        resolved = replace(principal, internal_id=internal_id)
        if self._cache_seconds and version == self._version:  # else the result may predate a change of users
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            self._cache[principal] = resolved, self._elapsed() + self._cache_seconds
        return resolved
