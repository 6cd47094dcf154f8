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
from holdfast.model import Message
from holdfast.parts import ContextPart, ImagePart, ProviderPart, TextPart, ToolPart

if TYPE_CHECKING:
    from holdfast.client.aclient import AsyncClient, connect_async
    from holdfast.client.asession import AsyncSession
    from holdfast.client.client import Client, connect
    from holdfast.client.session import Session
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

_LATER = {
    "AsyncClient": "holdfast.client.aclient",
    "AsyncSession": "holdfast.client.asession",
    "connect_async": "holdfast.client.aclient",
    "Client": "holdfast.client.client",
    "Session": "holdfast.client.session",
    "connect": "holdfast.client.client",
    "Settings": "holdfast.config",
}


def __getattr__(name: str) -> Any:
    """Load what is heavier than a noun when it is first used: `import holdfast` stays cheap."""
    if name not in _LATER:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value
