"""Counts the searches of each user in this process."""

import threading
from collections import OrderedDict
from typing import Any

import msgspec

MAX_USERS = 10_000
"""How many users are counted apart. The one who searched longest ago is forgotten first."""
_HIT_LISTS = ("memories", "resources", "skills", "messages", "overviews")


class SearchTotals(msgspec.Struct):
    queries: int = 0
    without_result: int = 0
    hits: int = 0
    scores: float = 0.0
    """The sum of the scores of all hits."""
    seconds: float = 0.0

    def add(self, other: "SearchTotals") -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class SearchStatistics:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_user: OrderedDict[tuple[str, str], SearchTotals] = OrderedDict()

    def record(self, account_id: str, user_id: str, result: Any, seconds: float) -> None:
        """Count a search. `user_id` is an internal id."""
        hits = [hit for name in _HIT_LISTS for hit in getattr(result, name, ())]
        search = SearchTotals(1, int(not hits), len(hits), sum(hit.score for hit in hits), max(0.0, seconds))
        with self._lock:
            self._by_user.setdefault((account_id, user_id), SearchTotals()).add(search)
            self._by_user.move_to_end((account_id, user_id))
            if len(self._by_user) > MAX_USERS:
                self._by_user.popitem(last=False)

    def totals(self, account_id: str | None, user_id: str | None) -> SearchTotals:
        """Return the counts of a user, of an account, or of all accounts."""
        totals = SearchTotals()
        with self._lock:
            for (account, user), counted in self._by_user.items():
                if account_id in {None, account} and user_id in {None, user}:
                    totals.add(counted)
        return totals
