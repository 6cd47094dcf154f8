"""Tool outputs stored apart, put back into messages."""

from collections.abc import Sequence

import msgspec

from holdfast.context import outputs
from holdfast.model import Message
from holdfast.store import toolresults
from holdfast.store.database import Tx


class Limits(msgspec.Struct, frozen=True):
    """How many characters of outputs are put back."""

    per_output: int = 64_000
    in_all: int = 2_000_000


def with_outputs(tx: Tx, messages: Sequence[Message], limits: Limits) -> list[Message]:
    """Stored messages with their outputs whole, the earliest first, as far as `limits` allow; else marked previews.

    Each message keeps the tokens it was stored with.
    """
    return outputs.put_back(messages, reader(tx), per_output=limits.per_output, in_all=limits.in_all)


def reader(tx: Tx) -> outputs.Read:
    """Reads an output that a stored message names. Its id was made by the engine, which no caller can choose."""
    return lambda tool_result_id: toolresults.content(tx, tool_result_id)
