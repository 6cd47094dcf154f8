"""Messages that are not indexed yet: a search reads them itself, or indexes them first if there are many."""

import time
from collections.abc import Sequence
from functools import partial

import msgspec

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.engine.recall.document_kinds import PendingDocument, read_messages
from holdfast.engine.recall.indexing import index_slice
from holdfast.store.database import Tx
from holdfast.store.tables import messages, unindexed
from holdfast.store.tables.lineage import LogRange

MAX_MESSAGES = 1_000
"""How many pending messages a search reads."""
MAX_BYTES = 4_000_000


class PendingMessage(msgspec.Struct, frozen=True):
    log_id: int
    document: PendingDocument


class Pending(msgspec.Struct, frozen=True):
    messages: list[PendingMessage]
    """The newest ones."""
    unread_logs: list[int]
    """Logs with pending messages that were not read, because there are too many."""


def read_pending(tx: Tx, ranges: Sequence[LogRange]) -> Pending:
    """Read pending messages of some ranges."""
    found: list[PendingMessage] = []
    unread: list[int] = []
    bytes_left = MAX_BYTES
    for each in ranges:
        limit = MAX_MESSAGES - len(found)
        if limit <= 0 or bytes_left <= 0:
            unread.append(each.log_id)
            continue
        sizes = messages.newest_sizes(tx, each, limit + 1)
        first, fitting = None, 0
        for seq, size in sizes[:limit]:
            if fitting + size > bytes_left and first is not None:
                break
            first, fitting = seq, fitting + size
        if first is None:
            continue
        if first != sizes[-1][0]:
            unread.append(each.log_id)
        bytes_left -= fitting
        read = read_messages(tx, LogRange(each.log_id, first, sizes[0][0]), limit, MAX_BYTES)
        found += [PendingMessage(each.log_id, document) for document in read]
    return Pending(found, list(dict.fromkeys(unread)))


def index_now(resources: EngineResources, account: str, log_ids: Sequence[int], deadline: float) -> None:
    """Index logs to their end, or until the monotonic time `deadline`. Call it outside a transaction."""
    read, write = partial(resources.db.read, account), partial(resources.db.write, account)
    left = list(log_ids)
    while left and time.monotonic() < deadline:
        registered = read(partial(unindexed.find, log_ids=left))
        if not registered:
            return
        index_slice(read, write, registered)
        left = [log.log_id for log in registered]
