"""Rows of `messages`, and the messages that they hold."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.model.messages import Message
from holdfast.model.parts import Part
from holdfast.store.database import Row
from holdfast.store.timestamps import from_micros

CHECKED_COLUMNS = "id, role, created_at, seq, tokens, extra, parts"
"""The columns that readers see, in the order in which the checksum covers them."""
COLUMNS = f"{CHECKED_COLUMNS}, checksum"
_decode_parts = msgspec.json.Decoder(list[list[Part]]).decode


class Extra(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields that few messages have, stored as JSON in the column `extra`."""

    peer_id: str | None = None
    turn_id: str | None = None
    message_kind: str | None = None
    source_message_ids: list[str] | None = None
    metadata: dict[str, Any] | None = None
    damaged: bool = False
    """Whether `holdfast doctor --fix` has put this message in place of a damaged one."""


_decode_extra = msgspec.json.Decoder(Extra).decode


def decode(rows: Sequence[Row]) -> list[Message]:
    """Convert rows with `COLUMNS`. Raises an error if one of them is invalid."""
    # Joining the JSON arrays and decoding once is faster than decoding each row.
    parts_by_row = _decode_parts("[" + ",".join([row[6] for row in rows]) + "]")
    return [
        Message(id, role, parts, from_micros(created_at), seq, tokens)
        if extra is None
        else _with_extra(Message(id, role, parts, from_micros(created_at), seq, tokens), extra)
        for (id, role, created_at, seq, tokens, extra, _, _), parts in zip(rows, parts_by_row, strict=True)  # noqa: A001
    ]


def _with_extra(message: Message, extra: str) -> Message:
    return msgspec.structs.replace(message, **msgspec.structs.asdict(_decode_extra(extra)))
