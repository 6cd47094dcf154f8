"""What background work needs is too heavy for who never commits. It is imported in one go, when there is work."""

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.engine.work import Work

# Nothing may fork meanwhile: a child would wait for ever for a module that a thread of its parent was importing.
_loading = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release)


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
