"""Which messages the prompt of a session has anyway: its live ones, also those that a fork has inherited."""

from collections.abc import Sequence

from holdfast.engine.recall.retrieval import RankedDocument
from holdfast.store.database import Tx
from holdfast.store.tables import lineage
from holdfast.store.tables.lineage import LogRange
from holdfast.store.tables.sessions import StoredSession


def live_ranges(tx: Tx, session: StoredSession | None) -> list[LogRange]:
    """Return where the live messages of a session are stored. A fork has its first ones in the logs of others."""
    return [] if session is None else lineage.log_ranges(tx, session, session.live_from)


def is_message_in(document: RankedDocument, ranges: Sequence[LogRange]) -> bool:
    """Return whether a document is a message in one of the ranges."""
    return document.kind == "message" and any(
        each.log_id == document.log_id and each.first <= document.number <= each.last for each in ranges
    )
