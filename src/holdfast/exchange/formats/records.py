"""What every format is read into: sessions as an import brings them."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from holdfast.errors import HoldfastError
from holdfast.model.base import is_name
from holdfast.model.files import Use
from holdfast.model.messages import NewMessage
from holdfast.model.sessions import Fork, SessionConfig, SessionState

_encode = msgspec.json.Encoder().encode


def no_uses() -> list[Use]:
    return []


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A session on its way in. What is None, its source does not tell: any value will do."""

    session_id: str
    messages: Callable[[], Iterator[NewMessage]]
    """The messages as a stream, from the first each time it is called; their parts are structs."""
    uses: Callable[[], list[Use]] = no_uses
    title: str | None = None
    metadata: dict[str, Any] | None = None
    created_at: datetime | None = None
    state: SessionState | None = None
    config: SessionConfig | None = None
    origin: Fork | None = None
    """Where it was forked from."""
    fork: Fork | None = None
    """Where to fork it from again: its origin, if that comes before it and has what they share."""
    note: str = ""
    """In what it will differ from what it was."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    sessions: Callable[[], Iterator[SessionRecord]]
    apart: bool = False
    """Whether one session's damage leaves the others sound, as in a folder with a folder for each."""


def broken(session_id: str, error: HoldfastError) -> SessionRecord:
    """A session that cannot be read; trying to says why."""

    def messages() -> Iterator[NewMessage]:
        raise error

    return SessionRecord(session_id=session_id, messages=messages)


def named(message: NewMessage, number: int, own: Any, seen: set[str]) -> NewMessage:
    """A message with its own id where that is safe and not `seen` yet, else with one of its place and what it says.

    Either is the same each time, so that a second import finds what the first one brought.
    """
    told = hashlib.sha256(_encode(message)).hexdigest()[:16]
    chosen = own if is_name(own) and own not in seen else f"import-{number:06d}-{told}"
    seen.add(chosen)
    return msgspec.structs.replace(message, id=chosen)
