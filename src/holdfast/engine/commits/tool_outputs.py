"""Put large tool outputs, which are stored separately, back into messages."""

from collections.abc import Sequence

import msgspec

from holdfast.context import tool_outputs
from holdfast.model.messages import Message
from holdfast.store.database import Tx
from holdfast.store.tables import tool_results


class OutputLimits(msgspec.Struct, frozen=True):
    """Maximum number of characters of tool outputs to put back."""

    per_output: int = 64_000
    total: int = 2_000_000


def restore_outputs(tx: Tx, messages: Sequence[Message], limits: OutputLimits) -> list[Message]:
    """Put complete tool outputs back, starting with the earliest, up to `limits`. The others become marked previews.

    The token counts of the messages do not change.
    """
    return tool_outputs.restore_within_chars(
        messages, output_reader(tx), max_chars_per_output=limits.per_output, max_chars=limits.total
    )


def output_reader(tx: Tx) -> tool_outputs.OutputReader:
    """Return a function that reads a tool output by its id.

    It does not check access: the engine generates the ids in stored messages, so a caller cannot choose one.
    """
    return lambda tool_result_id: tool_results.read_content(tx, tool_result_id)
