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
        self._cache: dict[tuple[str, str], tuple[str, float]] = {}
        """Internal ids, each with the time until which it is used."""

    def is_known(self, principal: Principal) -> bool:
        """Whether `resolve` needs no database access."""
        return principal == OPERATOR or bool(principal.internal_id) or self._cached(principal) is not None

    def resolve(self, principal: Principal) -> Principal:
        """Return the principal with its internal id."""
        if principal.internal_id or principal == OPERATOR:
            return principal
        internal_id = self._cached(principal) or self._read(principal)
        return replace(principal, internal_id=internal_id)

    def clear(self) -> None:
        """Forget the cached ids. Called after a change of users."""
        self._version += 1
        self._cache.clear()

    def _cached(self, principal: Principal) -> str | None:
        internal_id, valid_until = self._cache.get((principal.account_id, principal.user_id), ("", 0.0))
        return internal_id if internal_id and self._elapsed() < valid_until else None

    def _read(self, principal: Principal) -> str:
        version = self._version
        internal_id = self._db.read(principal.account_id, lambda tx: user_ids.current(tx, principal.user_id))
        if self._cache_seconds and version == self._version:  # else the result may predate a change of users
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            key = principal.account_id, principal.user_id
            self._cache[key] = internal_id, self._elapsed() + self._cache_seconds
        return internal_id
