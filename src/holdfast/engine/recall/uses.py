"""How much documents are raised by the uses that the caller has recorded."""

from collections.abc import Sequence

from holdfast.model.identity import Principal
from holdfast.search import hotness as formula
from holdfast.store.database import Tx
from holdfast.store.tables import usages


def hotness(tx: Tx, principal: Principal, uris: Sequence[str], now: int) -> dict[str, float]:
    """Return how hot documents are for the caller, from 0 to 1, by address. Those that were not used are missing.

    The addresses have the form of `search.requests.addresses.canonical_address`. `now` is in microseconds.
    """
    used = usages.find_counts(tx, principal.internal_id, uris)
    return {uri: formula.hotness(count, used_at, now) for uri, (count, used_at) in used.items()}
