"""Which messages of a large archive a summary reads, so that its CPU time has a limit.

Calls and results are paired in all messages, because an open call must be listed wherever it is. Everything else is
read from messages with at most `MAX_CHARS` characters in all. That is about 125,000 tokens, so the limit changes the
summaries of few archives.
"""

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.model.messages import Message
from holdfast.model.parts import Part, ProviderPart, TextPart, ToolPart
from holdfast.summary.rules.splitting import has_rule_word
from holdfast.text.sentences import MAX_MESSAGE_CHARS

MAX_CHARS = 500_000
"""Characters that a summary reads of an archive."""
MAX_CHARS_OF_MESSAGE = 4 * MAX_MESSAGE_CHARS
"""Characters that it reads of a message with many parts. `MAX_MESSAGE_CHARS` is the limit of one part."""
_MIN_CHARS = 140
"""A shorter message or tool call counts as this many characters: it takes about as long to read."""
_OUTPUT_CHARS_PER_CHAR = 4
"""A tool output is read faster than prose: only some of its lines become sentences."""
_END_SHARE, _BEGINNING_SHARE, _RULES_SHARE = 1 / 2, 1 / 4, 1 / 8
"""Shares of `MAX_CHARS`: the last messages, the first ones, and messages between them with words of rules. The rest
is for messages between them at equal distances."""


def limit_reading(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages as a summary reads them. A message that it does not read has no parts.

    The last messages have the state of the work and the first ones its purpose. Between them, messages of users with
    words of rules come first.
    """
    sizes = [_reading_chars(message) for message in messages]
    if sum(sizes) <= MAX_CHARS and max(sizes, default=0) <= MAX_CHARS_OF_MESSAGE:
        return messages
    chosen = _choose([min(size, MAX_CHARS_OF_MESSAGE) for size in sizes], messages)
    no_parts: list[Part] = []
    return [
        _without_middle_parts(message, size) if at in chosen else msgspec.structs.replace(message, parts=no_parts)
        for at, (message, size) in enumerate(zip(messages, sizes, strict=True))
    ]


def reading_notes(messages: Sequence[Message]) -> list[str]:
    """Return a note for the caller if the messages are too large to be read completely."""
    read = sum(bool(message.parts) for message in limit_reading(messages))
    if read == len(messages):
        return []
    return [f"the archive is large: values and rules were read from {read} of its {len(messages)} messages"]


def _choose(sizes: Sequence[int], messages: Sequence[Message]) -> set[int]:
    """Return the indexes of the messages to read."""
    if sum(sizes) <= MAX_CHARS:
        return set(range(len(sizes)))
    end = _take(reversed(range(len(sizes))), sizes, round(MAX_CHARS * _END_SHARE))
    beginning = _take(range(len(sizes)), sizes, round(MAX_CHARS * _BEGINNING_SHARE))
    middle = range(len(beginning), len(sizes) - len(end))
    may_have_rules = [at for at in middle if messages[at].role == "user" and has_rule_word(messages[at].text)]
    with_rules = _spread(may_have_rules, sizes, round(MAX_CHARS * _RULES_SHARE))
    chosen = {*beginning, *end, *with_rules}
    others = [at for at in middle if at not in chosen]
    return chosen.union(_spread(others, sizes, MAX_CHARS - sum(sizes[at] for at in chosen)))


def _spread(indexes: Sequence[int], sizes: Sequence[int], max_chars: int) -> list[int]:
    """Return all indexes if their messages fit, otherwise as many as fit, at equal distances."""
    total = sum(sizes[at] for at in indexes)
    step = max(1, -(-total // max(1, max_chars)))
    return _take(indexes[::step], sizes, max_chars)


def _take(indexes: Iterable[int], sizes: Sequence[int], max_chars: int) -> list[int]:
    """Return the first indexes whose messages have at most `max_chars` in all."""
    taken: list[int] = []
    left = max_chars
    for at in indexes:
        left -= sizes[at]
        if left < 0:
            break
        taken.append(at)
    return taken


def _reading_chars(message: Message) -> int:
    """Return how many characters of a message count. Tokens stand for structured values, whose text is not known."""
    parts = message.parts
    if len(parts) == 1 and type(parts[0]) is TextPart:  # the usual message needs no sum
        return max(_MIN_CHARS, min(MAX_MESSAGE_CHARS, len(parts[0].text)))
    chars = sum(map(_part_chars, parts))
    has_calls = any(type(part) is ToolPart for part in parts)
    return max(_MIN_CHARS, chars, min(message.tokens, MAX_CHARS_OF_MESSAGE) if has_calls else 0)


def _part_chars(part: Part) -> int:
    match part:
        case TextPart() | ProviderPart():
            return min(MAX_MESSAGE_CHARS, len(part.text))
        case ToolPart():
            output_chars = len(part.tool_output) if isinstance(part.tool_output, str) else 0
            return _MIN_CHARS + output_chars // _OUTPUT_CHARS_PER_CHAR
    return 0


def _without_middle_parts(message: Message, size: int) -> Message:
    """Return a message with its first and last parts, as many as may be read."""
    if size <= MAX_CHARS_OF_MESSAGE:
        return message
    sizes = [_part_chars(part) for part in message.parts]
    first = _take(range(len(sizes)), sizes, MAX_CHARS_OF_MESSAGE * 2 // 3)
    last = _take(range(len(sizes) - 1, len(first) - 1, -1), sizes, MAX_CHARS_OF_MESSAGE // 3)
    return msgspec.structs.replace(message, parts=[message.parts[at] for at in (*first, *reversed(last))])
