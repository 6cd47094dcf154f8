"""Large tool outputs in a context: marked previews, and complete outputs within limits.

A message has only a preview of a large tool output. The complete output is stored separately.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from holdfast.model.archives import ReceiptLine
from holdfast.model.messages import Message
from holdfast.model.parts import Part, TextPart, ToolPart

TokenCounter = Callable[[str], int]
OutputReader = Callable[[str], str | None]
"""Returns the complete output with a `tool_result_id`."""

PartPosition = tuple[int, int]
"""The seq of a message and the index of one of its parts."""
MAX_RESTORED_CHARS = 4_000_000
"""Characters of complete outputs in one response."""
MAX_CHARS_PER_TOKEN = 8
"""An output with more characters per remaining token is not read, because it cannot fit."""
_MAX_TRIMMED_CHARS = 120
"""Characters that a preview may lose in order to end with a line or a word."""


class OutputBudget(msgspec.Struct, frozen=True):
    """The tokens that complete outputs may cost, and two ways to count them."""

    tokens: int
    count: TokenCounter
    count_upper_bound: TokenCounter
    """Never returns less than the exact number of tokens."""


class RestoredMessages(msgspec.Struct, frozen=True):
    """Messages with complete outputs where these fit, and a receipt line for each output."""

    messages: list[Message]
    included: list[ReceiptLine]
    left_out: list[ReceiptLine]
    complete: frozenset[PartPosition]
    """Where complete outputs were restored."""


def find_messages_with_outputs(messages: Sequence[Message]) -> list[int]:
    """Return the indexes of the messages with an output that is stored separately."""
    with_tools = [at for at, message in enumerate(messages) for part in message.parts if type(part) is ToolPart]
    return [at for at in dict.fromkeys(with_tools) if any(_stored_outputs(messages[at]))]


def mark_previews(messages: Sequence[Message], indexes: Sequence[int], count: TokenCounter) -> list[Message]:
    """Mark the previews of the messages at `indexes` as incomplete, and add the tokens of the marks."""
    marked = list(messages)
    for at in indexes:
        marked[at] = _mark_message(messages[at], count)
    return marked


def restore_within_chars(
    messages: Sequence[Message], read: OutputReader, *, max_chars_per_output: int, max_chars: int
) -> list[Message]:
    """Restore complete outputs, the earliest first, within limits in characters. Mark the previews of the others.

    The token counts of the messages do not change.
    """
    left = max_chars
    restored = list(messages)
    for at in find_messages_with_outputs(messages):
        for number, part in _stored_outputs(messages[at]):
            chars = part.tool_output_chars
            output = read(part.tool_result_id) if chars <= min(max_chars_per_output, left) else None
            left -= chars if output is not None else 0
            restored[at] = _replace_output(restored[at], number, mark_preview(part) if output is None else output, 0)
    return restored


def restore_within_tokens(
    messages: Sequence[Message], indexes: Sequence[int], budget: OutputBudget, read: OutputReader
) -> RestoredMessages:
    """Restore complete outputs, the newest first, as far as they fit the budget. Previews must be marked already."""
    restored = list(messages)
    included: list[ReceiptLine] = []
    left_out: list[ReceiptLine] = []
    complete: set[PartPosition] = set()
    tokens_left, chars_left = budget.tokens, MAX_RESTORED_CHARS
    for at in reversed(indexes):
        for number, part in reversed(list(_stored_outputs(messages[at]))):
            output, is_damaged = None, False
            if part.tool_output_chars <= min(chars_left, tokens_left * MAX_CHARS_PER_TOKEN):
                output = read(part.tool_result_id)
                is_damaged = output is None
                chars_left -= part.tool_output_chars
            shown = budget.count(part.tool_output)
            tokens = _estimate_more(part, shown) if output is None else max(0, budget.count(output) - shown)
            reserved = 0 if output is None else max(0, budget.count_upper_bound(output) - shown - tokens)
            if output is None or tokens + reserved > tokens_left:
                why = _why_left_out(part, tokens + reserved, tokens_left)
                if is_damaged:
                    why = f"output {part.tool_result_id} is damaged; its beginning is shown"
                left_out.append(_receipt_line(messages[at], part, tokens, reserved, why))
                continue
            tokens_left -= tokens + reserved
            restored[at] = _replace_output(restored[at], number, output, tokens)
            complete.add((messages[at].seq, number))
            why = f"output {part.tool_result_id} is complete: it fits the remaining budget"
            included.append(_receipt_line(messages[at], part, tokens, reserved, why))
    return RestoredMessages(restored, included, left_out, frozenset(complete))


def restore_chosen(
    messages: Sequence[Message], complete: frozenset[PartPosition], count: TokenCounter, read: OutputReader
) -> list[Message]:
    """Mark previews and restore the complete outputs at the given positions, as `restore_within_tokens` chose them."""
    indexes = find_messages_with_outputs(messages)
    restored = mark_previews(messages, indexes, count)
    for at in indexes:
        for number, part in list(_stored_outputs(restored[at])):
            output = read(part.tool_result_id) if (restored[at].seq, number) in complete else None
            if output is not None:
                tokens = max(0, count(output) - count(part.tool_output))
                restored[at] = _replace_output(restored[at], number, output, tokens)
    return restored


def without_other_parts(message: Message) -> Message:
    """Return a message with only the previews of its stored outputs. All other parts are empty texts."""
    parts: list[Part] = [TextPart("")] * len(message.parts)
    for number, part in _stored_outputs(message):
        parts[number] = msgspec.structs.replace(
            part, tool_id="", tool_name="", tool_uri="", skill_uri="", tool_input=None, provider_fields=None
        )
    return Message(message.id, message.role, parts, message.created_at, message.seq, message.tokens)


def mark_preview(part: ToolPart) -> str:
    r"""Return the preview of an output with a mark at its end: how much is missing, and the id to read it.

    >>> mark_preview(ToolPart(tool_output="one two thr", tool_result_id="tr_1", tool_output_chars=1_011))
    'one two \n[... 1,003 more characters: tr_1 ...]'
    """
    preview = str(part.tool_output)
    if len(preview) >= part.tool_output_chars:
        return preview
    min_end = max(1, len(preview) - _MAX_TRIMMED_CHARS)
    end = preview.rfind("\n", min_end) + 1 or preview.rfind(" ", min_end) + 1 or len(preview)
    trimmed = preview[:end]
    missing = part.tool_output_chars - len(trimmed)
    newline = "" if trimmed.endswith("\n") else "\n"
    return f"{trimmed}{newline}[... {missing:,} more characters: {part.tool_result_id} ...]"


def count_stored_chars(messages: Sequence[Message], indexes: Sequence[int]) -> int:
    """Return the number of characters of all outputs that are stored separately."""
    return sum(part.tool_output_chars for at in indexes for _, part in _stored_outputs(messages[at]))


def _stored_outputs(message: Message) -> Iterator[tuple[int, ToolPart]]:
    """Return the parts whose outputs are stored separately, with their indexes."""
    for number, part in enumerate(message.parts):
        if isinstance(part, ToolPart) and part.tool_result_id:
            yield number, part


def _mark_message(message: Message, count: TokenCounter) -> Message:
    for number, part in _stored_outputs(message):
        text = mark_preview(part)
        message = _replace_output(message, number, text, count(text) - count(str(part.tool_output)))
    return message


def _replace_output(message: Message, number: int, output: str, more_tokens: int) -> Message:
    parts = list(message.parts)
    parts[number] = msgspec.structs.replace(parts[number], tool_output=output)
    return msgspec.structs.replace(message, parts=parts, tokens=max(0, message.tokens + more_tokens))


def _estimate_more(part: ToolPart, shown: int) -> int:
    """Estimate the additional tokens of an output that was not read, from the tokens of its preview."""
    return max(0, shown * part.tool_output_chars // max(1, len(part.tool_output)) - shown)


def _why_left_out(part: ToolPart, needed: int, left: int) -> str:
    return (
        f"output {part.tool_result_id} is shown as a preview: the complete output needs about {needed} more tokens and"
        f" {max(left, 0)} are left; read it with read_tool_result"
    )


def _receipt_line(message: Message, part: ToolPart, tokens: int, reserved: int, why: str) -> ReceiptLine:
    return ReceiptLine(
        what="tool_output",
        first_seq=message.seq,
        last_seq=message.seq,
        tokens=tokens,
        reserved=reserved,
        tool_result_id=part.tool_result_id,
        why=why,
    )
