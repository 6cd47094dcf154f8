"""Tool outputs that are stored apart: previews with a mark, and whole ones where there is room."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from holdfast.model.archives import ReceiptLine
from holdfast.model.messages import Message
from holdfast.model.parts import ToolPart

TokenCounter = Callable[[str], int]
Read = Callable[[str], str | None]
"""The whole output with this `tool_result_id`."""

MAX_CHARS = 4_000_000
"""Characters of whole outputs in one answer."""
MAX_CHARS_PER_TOKEN = 8
"""An output with more characters for each token that is left is not read to find out whether it fits."""
_LOOK_BACK = 120
"""Characters that a preview may lose to end at a border of lines or words."""


class Room(msgspec.Struct, frozen=True):
    """What whole outputs may cost, and how that is counted."""

    tokens: int
    count: TokenCounter
    bound: TokenCounter
    """Counts so that what fits by it fits in fact."""


class Filled(msgspec.Struct, frozen=True):
    """Messages with their outputs whole where there was room, and a line for each output."""

    messages: list[Message]
    included: list[ReceiptLine]
    left_out: list[ReceiptLine]


def find(messages: Sequence[Message]) -> list[int]:
    """The places of the messages with an output that is stored apart."""
    tools = [at for at, message in enumerate(messages) for part in message.parts if type(part) is ToolPart]
    return [at for at in dict.fromkeys(tools) if any(_outputs(messages[at]))]


def mark_previews(messages: Sequence[Message], places: Sequence[int], count: TokenCounter) -> list[Message]:
    """The messages with a mark at the end of each preview, at `places`; their tokens count what is shown."""
    marked = list(messages)
    for at in places:
        marked[at] = _marked(messages[at], count)
    return marked


def put_back(messages: Sequence[Message], read: Read, *, per_output: int, in_all: int) -> list[Message]:
    """The messages with outputs whole up to so many characters each and in all; the rest are marked previews.

    Tokens stay those of the stored messages.
    """
    room = in_all
    filled = list(messages)
    for at in find(messages):
        for number, part in _outputs(messages[at]):
            chars = part.tool_output_chars
            whole = read(part.tool_result_id) if chars <= min(per_output, room) else None
            room -= chars if whole is not None else 0
            filled[at] = _with(filled[at], number, mark(part) if whole is None else whole, 0)
    return filled


def fill(messages: Sequence[Message], places: Sequence[int], room: Room, read: Read) -> Filled:
    """Put outputs back, the newest first, each whole or not at all. The previews in `messages` are marked."""
    filled = list(messages)
    included: list[ReceiptLine] = []
    left_out: list[ReceiptLine] = []
    left, readable = room.tokens, MAX_CHARS
    for at in reversed(places):
        for number, part in reversed(list(_outputs(messages[at]))):
            whole = None
            if part.tool_output_chars <= min(readable, left * MAX_CHARS_PER_TOKEN):
                whole = read(part.tool_result_id)
                readable -= part.tool_output_chars
            shown = room.count(part.tool_output)
            tokens = _guess(part, shown) if whole is None else max(0, room.count(whole) - shown)
            reserved = 0 if whole is None else max(0, room.bound(whole) - shown - tokens)
            if whole is None or tokens + reserved > left:
                left_out.append(_line(messages[at], part, tokens, reserved, _why_not(part, tokens + reserved, left)))
                continue
            left -= tokens + reserved
            filled[at] = _with(filled[at], number, whole, tokens)
            why = f"output {part.tool_result_id} is whole: it fits what was left"
            included.append(_line(messages[at], part, tokens, reserved, why))
    return Filled(filled, included, left_out)


def mark(part: ToolPart) -> str:
    r"""The preview of a part, with what is missing at its end.

    >>> mark(ToolPart(tool_output="one two thr", tool_result_id="tr_1", tool_output_chars=1_011))
    'one two \n[... 1,003 more characters: tr_1 ...]'
    """
    preview = str(part.tool_output)
    if len(preview) >= part.tool_output_chars:
        return preview
    earliest = max(1, len(preview) - _LOOK_BACK)
    border = preview.rfind("\n", earliest) + 1 or preview.rfind(" ", earliest) + 1 or len(preview)
    kept = preview[:border]
    missing = part.tool_output_chars - len(kept)
    return (
        f"{kept}{'' if kept.endswith(chr(10)) else chr(10)}[... {missing:,} more characters: {part.tool_result_id} ...]"
    )


def chars_apart(messages: Sequence[Message], places: Sequence[int]) -> int:
    """The characters of all outputs that are stored apart."""
    return sum(part.tool_output_chars for at in places for _, part in _outputs(messages[at]))


def _outputs(message: Message) -> Iterator[tuple[int, ToolPart]]:
    for number, part in enumerate(message.parts):
        if isinstance(part, ToolPart) and part.tool_result_id:
            yield number, part


def _marked(message: Message, count: TokenCounter) -> Message:
    for number, part in _outputs(message):
        text = mark(part)
        message = _with(message, number, text, count(text) - count(str(part.tool_output)))
    return message


def _with(message: Message, number: int, output: str, more_tokens: int) -> Message:
    parts = list(message.parts)
    parts[number] = msgspec.structs.replace(parts[number], tool_output=output)
    return msgspec.structs.replace(message, parts=parts, tokens=max(0, message.tokens + more_tokens))


def _guess(part: ToolPart, shown: int) -> int:
    """The tokens of an output that was not read, from those of its preview."""
    return max(0, shown * part.tool_output_chars // max(1, len(part.tool_output)) - shown)


def _why_not(part: ToolPart, needed: int, left: int) -> str:
    return (
        f"output {part.tool_result_id} is shown as a preview: the whole needs about {needed} more tokens and"
        f" {max(left, 0)} are left; read it with read_tool_result"
    )


def _line(message: Message, part: ToolPart, tokens: int, reserved: int, why: str) -> ReceiptLine:
    return ReceiptLine(
        what="tool_output",
        first_seq=message.seq,
        last_seq=message.seq,
        tokens=tokens,
        reserved=reserved,
        tool_result_id=part.tool_result_id,
        why=why,
    )
