"""How much stored files are raised by the uses that the caller has recorded."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.engine.recall.files.stored_roots import canonical_roots
from holdfast.model.identity import Principal
from holdfast.search import hotness as formula
from holdfast.store.access.search import file_uses
from holdfast.store.database import Tx

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


def hotness_of_files(tx: Tx, principal: Principal, now: int, places: Sequence[tuple[str, str]]) -> "Array":
    """Return how hot files are for the caller, by their roots and paths.

    A use of a folder, such as that of a skill, counts for what is in it.
    """
    uses = file_uses.read(tx, principal.internal_id)
    if not uses:
        return np.zeros(len(places))
    hot = {uri: formula.hotness(each.uses, each.last_used_at, now) for uri, each in uses.items()}
    roots = canonical_roots(principal)
    return np.array([_hottest(hot, roots[root], path) for root, path in places])


def _hottest(hot: dict[str, float], top: str, path: str) -> float:
    """Return the hotness of a file, or of the hottest folder above it."""
    hottest = 0.0
    while path:
        hottest = max(hottest, hot.get(f"{top}/{path}", 0.0))
        path = path.rpartition("/")[0]
    return hottest
