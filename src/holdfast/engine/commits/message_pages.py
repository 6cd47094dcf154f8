"""Messages of a log as pages: of an archive, of a context, or of the messages that a reference names."""

from collections.abc import Callable, Iterator, Sequence

from holdfast.context.tool_outputs import PartPosition, TokenCounter, restore_chosen, without_other_parts
from holdfast.engine.commits.tool_outputs import output_reader
from holdfast.engine.gate.session_access import require_unchanged
from holdfast.engine.gate.streams import Page
from holdfast.model.identity import Principal
from holdfast.model.messages import Message
from holdfast.store import read_memory
from holdfast.store.database import Tx
from holdfast.store.tables import lineage, messages, tool_results
from holdfast.store.tables.lineage import LogRange
from holdfast.store.tables.sessions import StoredSession

ALL_MESSAGES = 2**31
"""More messages than any session has."""
MAX_LISTED_SIZES = 500
"""How many sizes of messages are listed at once."""

Converter = Callable[[Tx, list[Message]], list[Message]]


def unchanged(_tx: Tx, found: list[Message]) -> list[Message]:
    return found


def message_page(
    tx: Tx,
    principal: Principal,
    session: StoredSession,
    log_ranges: Sequence[LogRange],
    convert: Converter = unchanged,
) -> Page[Message]:
    """Read the messages of log ranges of a session. A page is converted in the transaction in which it is read."""
    if not log_ranges:
        return Page([])
    rows = messages.read_page(tx, log_ranges, ALL_MESSAGES)
    converted = convert(tx, rows.messages)
    if not rows.has_more:
        return Page(converted)
    following = lineage.ranges_after(log_ranges, rows.messages[-1].seq)

    def read_next(tx: Tx) -> Page[Message]:
        return message_page(tx, principal, require_unchanged(tx, principal, session), following, convert)

    return Page(converted, read_next)


def output_previews(tx: Tx, log_ranges: Sequence[LogRange]) -> list[Message]:
    """Read the messages with large tool outputs, without their other parts."""
    found: list[Message] = []
    for log_range in log_ranges:
        seqs = tool_results.seqs_with_outputs(tx, log_range)
        for batch in split_by_size(tx, log_range.log_id, seqs, read_memory.page_bytes()):
            found += map(without_other_parts, messages.read_seqs(tx, log_range.log_id, batch))
    return found


def output_converter(complete: frozenset[PartPosition], count: TokenCounter, hidden_seq: int | None) -> Converter:
    """Return a function that shows messages as a context does: with complete outputs, or with marked previews.

    It leaves out the message `hidden_seq`.
    """

    def convert(tx: Tx, found: list[Message]) -> list[Message]:
        shown = [message for message in found if message.seq != hidden_seq]
        return restore_chosen(shown, complete, count, output_reader(tx))

    return convert


def split_by_size(tx: Tx, log_id: int, seqs: Sequence[int], max_bytes: int) -> Iterator[list[int]]:
    """Divide sequence numbers of a log into batches whose messages have at most `max_bytes`, or one larger message.

    Raises `LargeReadError` at a message that is larger than a read may hold.
    """
    batch: list[int] = []
    batch_bytes = 0
    for start in range(0, len(seqs), MAX_LISTED_SIZES):
        sizes = messages.sizes(tx, log_id, seqs[start : start + MAX_LISTED_SIZES])
        for seq in seqs[start : start + MAX_LISTED_SIZES]:
            size = sizes.get(seq, 0)
            read_memory.require(size)
            if batch and batch_bytes + size > max_bytes:
                yield batch
                batch, batch_bytes = [], 0
            batch.append(seq)
            batch_bytes += size
    if batch:
        yield batch
