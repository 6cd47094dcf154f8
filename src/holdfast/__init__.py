"""Holdfast: the durable session layer for AI agents.

>>> import holdfast
>>> with holdfast.connect(":memory:") as client:
...     session = client.session("chat_001")
...     added = session.add_message("user", [holdfast.TextPart("How do I configure embedding?")])
...     added.seq, session.messages[0].text
(1, 'How do I configure embedding?')
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast import errors
from holdfast.model.messages import Message
from holdfast.model.parts import ContextPart, ImagePart, ProviderPart, TextPart, ToolPart

if TYPE_CHECKING:
    from holdfast.client.generated.client import AsyncClient, connect_async
    from holdfast.client.generated.session import AsyncSession
    from holdfast.client.sync.client import Client, connect
    from holdfast.client.sync.session import Session
    from holdfast.config import Settings

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "AsyncSession",
    "Client",
    "ContextPart",
    "ImagePart",
    "Message",
    "ProviderPart",
    "Session",
    "Settings",
    "TextPart",
    "ToolPart",
    "connect",
    "connect_async",
    "errors",
]

_LAZY_ATTRIBUTES = {
    "AsyncClient": "holdfast.client.generated.client",
    "AsyncSession": "holdfast.client.generated.session",
    "connect_async": "holdfast.client.generated.client",
    "Client": "holdfast.client.sync.client",
    "Session": "holdfast.client.sync.session",
    "connect": "holdfast.client.sync.client",
    "Settings": "holdfast.config",
}


def __getattr__(name: str) -> Any:
    """Import clients and settings when they are first used, so that `import holdfast` stays fast."""
    if name not in _LAZY_ATTRIBUTES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = getattr(import_module(_LAZY_ATTRIBUTES[name]), name)
    globals()[name] = value
    return value
