"""Rows of `messages`, and the messages that they hold."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.json_documents import decode_at_once, json_decoder
from holdfast.model.messages import Message
from holdfast.model.parts import Part
from holdfast.store.database import Row
from holdfast.store.timestamps import from_micros

CHECKED_COLUMNS = "id, role, created_at, seq, tokens, extra, parts"
"""The columns that readers see, in the order in which the checksum covers them."""
COLUMNS = f"{CHECKED_COLUMNS}, checksum"
PAGE_ROWS = 256
PAGE_CHARS = 1_000_000
"""How many messages are decoded at once, and how much JSON."""
_LARGE_CHARS = 100_000
_decode_parts = json_decoder(list[list[Part]]).decode


class Extra(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields that few messages have, stored as JSON in the column `extra`."""

    peer_id: str | None = None
    turn_id: str | None = None
    message_kind: str | None = None
    source_message_ids: list[str] | None = None
    metadata: dict[str, Any] | None = None
    damaged: bool = False
    """Whether `holdfast doctor --fix` has put this message in place of a damaged one."""
    author: str | None = None
    agent_id: str | None = None


_decode_extra = json_decoder(Extra).decode
_encode_extra = msgspec.json.Encoder(order="deterministic").encode


def set_author(extra: str | None, author: str | None, agent_id: str | None) -> str | None:
    """Return the column `extra` with another author. Without one, it is what the author has sent."""
    decoded = Extra() if extra is None else _decode_extra(extra)
    changed = msgspec.structs.replace(decoded, author=author, agent_id=agent_id)
    return None if changed == Extra() else _encode_extra(changed).decode()


def find_author(extra: str | None) -> str | None:
    """Return the author in the column `extra`, or None if the owner of the session added the message."""
    return None if extra is None else _decode_extra(extra).author


def decode(rows: Sequence[Row]) -> list[Message]:
    """Convert rows with `COLUMNS`. Raises an error if one of them is invalid."""
    if len(rows) <= PAGE_ROWS:
        return _decode_page(rows)
    # Other threads can run between two pages. A single decoding of all messages would stop them for seconds.
    return [message for at in range(0, len(rows), PAGE_ROWS) for message in _decode_page(rows[at : at + PAGE_ROWS])]


def _decode_page(rows: Sequence[Row]) -> list[Message]:
    joined = ",".join([row[6] for row in rows])
    if len(joined) > PAGE_CHARS and len(rows) > 1:
        half = len(rows) // 2
        return [*_decode_page(rows[:half]), *_decode_page(rows[half:])]
    # Joining the JSON arrays and decoding once is faster than decoding each row.
    document = f"[{joined}]"
    is_large = len(document) > _LARGE_CHARS
    parts_by_row = decode_at_once(_decode_parts, document) if is_large else _decode_parts(document)
    return [
        Message(id, role, parts, from_micros(created_at), seq, tokens)
        if extra is None
        else _with_extra(Message(id, role, parts, from_micros(created_at), seq, tokens), extra)
        for (id, role, created_at, seq, tokens, extra, _, _), parts in zip(rows, parts_by_row, strict=True)  # noqa: A001
    ]


def _with_extra(message: Message, extra: str) -> Message:
    return msgspec.structs.replace(message, **msgspec.structs.asdict(_decode_extra(extra)))
