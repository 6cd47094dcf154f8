"""What background work needs is too heavy for who never commits. It is imported in one go, when there is work."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast import forking

if TYPE_CHECKING:
    from holdfast.engine.work import Work

# Nothing may fork meanwhile: a child would wait for ever for a module that a thread of its parent was importing.
_loading = forking.lock_held_by_forks()


def load() -> "Callable[[Work], None]":
    """What performs a task."""
    with _loading:
        import encodings.idna  # noqa: F401, PLC0415 - Python imports it itself when a host is first looked up

        import httpx2  # noqa: F401, PLC0415
        import numpy as np  # noqa: F401, PLC0415
        import safetensors.numpy  # noqa: F401, PLC0415
        import tokenizers  # noqa: F401, PLC0415

        from holdfast.engine import archiving  # noqa: PLC0415
        from holdfast.providers import anthropic, choose, local, openai  # noqa: F401, PLC0415

        return archiving.perform
