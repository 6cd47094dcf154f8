"""Tool outputs stored apart, put back into messages."""

from collections.abc import Sequence

import msgspec

from holdfast.context import tool_outputs
from holdfast.model.messages import Message
from holdfast.store.database import Tx
from holdfast.store.tables import tool_results


class Limits(msgspec.Struct, frozen=True):
    """How many characters of outputs are put back."""

    per_output: int = 64_000
    in_all: int = 2_000_000


def with_outputs(tx: Tx, messages: Sequence[Message], limits: Limits) -> list[Message]:
    """Stored messages with their outputs whole, the earliest first, as far as `limits` allow; else marked previews.

    Each message keeps the tokens it was stored with.
    """
    return tool_outputs.put_back(messages, reader(tx), per_output=limits.per_output, in_all=limits.in_all)


def reader(tx: Tx) -> tool_outputs.Read:
    """Reads an output that a stored message names. Its id was made by the engine, which no caller can choose."""
    return lambda tool_result_id: tool_results.content(tx, tool_result_id)
