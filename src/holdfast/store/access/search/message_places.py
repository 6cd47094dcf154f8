"""Messages at many places of any logs, read with one statement."""

from collections.abc import Sequence

from holdfast.model.messages import Message
from holdfast.store.access.search.places import Place, encode_places, select_places
from holdfast.store.checked import salvage
from holdfast.store.checked.message_rows import COLUMNS
from holdfast.store.database import Row, Tx
from holdfast.store.tables import messages

_AT_PLACE = "m.account_id = ? AND m.log_id = p.log_id AND m.seq = p.first_seq"
_COLUMNS_OF_M = ", ".join(f"m.{column}" for column in COLUMNS.split(", "))


def read(tx: Tx, places: Sequence[Place]) -> dict[Place, Message]:
    """Read messages of any logs by log and sequence number."""
    sql = select_places(tx, f"m.log_id, {_COLUMNS_OF_M}", "messages m", _AT_PLACE)
    try:
        rows = tx.all(sql, (encode_places(places), tx.account))
    except tx.dialect.unreadable_row:
        rows = []
    by_log: dict[int, list[Row]] = {}
    for row in rows:
        by_log.setdefault(row[0], []).append(row[1:])
    found: dict[Place, Message] = {}
    wanted: dict[int, list[int]] = {}
    for log_id, seq in sorted(places):
        wanted.setdefault(log_id, []).append(seq)
    for log_id, seqs in wanted.items():
        of_log = by_log.get(log_id, [])
        intact = salvage.decode_intact(tx, log_id, of_log) if len(of_log) == len(seqs) else None
        read = messages.read_seqs(tx, log_id, seqs) if intact is None else intact
        found.update({(log_id, message.seq): message for message in read})
    return found


def sizes(tx: Tx, places: Sequence[Place]) -> dict[Place, int]:
    """Return the sizes in bytes of messages of any logs by log and sequence number, without reading the messages."""
    sql = select_places(tx, "m.log_id, m.seq, OCTET_LENGTH(m.parts)", "messages m", _AT_PLACE)
    try:
        rows = tx.all(sql, (encode_places(places), tx.account))
    except tx.dialect.unreadable_row:
        return {}
    return {(log_id, seq): size for log_id, seq, size in rows if isinstance(size, int)}
