"""Messages of a session as lines of a file. Memory holds a batch of messages at a time."""

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.engine.commits.message_pages import split_by_size
from holdfast.model.messages import Message
from holdfast.store import read_memory
from holdfast.store.database import Tx
from holdfast.store.tables import lineage, messages
from holdfast.store.tables.lineage import LogRange
from holdfast.store.tables.sessions import StoredSession

BATCH_MESSAGES = 500
BATCH_BYTES = 1_000_000

_encode = msgspec.json.Encoder().encode


def message_lines(tx: Tx, session: StoredSession, first: int, last: int) -> Iterator[str]:
    """Yield messages `first` to `last` of a session, one per line."""
    if first > last:
        return
    for log_range in lineage.log_ranges(tx, session, first, last):
        for seqs in _seqs_in_batches(tx, log_range):
            yield from (f"{_encode(message).decode()}\n" for message in read_in_batches(tx, log_range.log_id, seqs))


def _seqs_in_batches(tx: Tx, log_range: LogRange) -> Iterator[Sequence[int]]:
    """Yield the sequence numbers of a range in batches. Of a long gap, which is damage, only one batch is included."""
    start = log_range.first
    while start <= log_range.last:
        seqs = range(start, min(start + BATCH_MESSAGES, log_range.last + 1))
        yield seqs
        start = seqs[-1] + 1
        if not messages.sizes(tx, log_range.log_id, seqs):
            start = messages.next_seq(tx, LogRange(log_range.log_id, start, log_range.last)) or log_range.last + 1


def read_in_batches(tx: Tx, log_id: int, seqs: Sequence[int]) -> Iterator[Message]:
    """Read messages of a log, in batches of at most `BATCH_BYTES`, or of one message that is larger."""
    for batch in split_by_size(tx, log_id, seqs, min(BATCH_BYTES, read_memory.page_bytes())):
        yield from messages.read_seqs(tx, log_id, batch)
