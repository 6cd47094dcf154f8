"""The common representation of imported sessions. Every format is converted to it."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from holdfast.errors import HoldfastError
from holdfast.model.base import is_name, safe_name
from holdfast.model.messages import NewMessage
from holdfast.model.sessions import Fork, SessionConfig, SessionState
from holdfast.model.tree.files import Use
from holdfast.provider_formats.fields import PROVIDER_FIELDS

_encode = msgspec.json.Encoder().encode


def no_uses() -> list[Use]:
    return []


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A session to import. A field is None if the source does not specify it; then any stored value matches."""

    session_id: str
    messages: Callable[[], Iterator[NewMessage]]
    """Each call iterates over all messages from the first. Their parts are structs."""
    uses: Callable[[], list[Use]] = no_uses
    title: str | None = None
    metadata: dict[str, Any] | None = None
    created_at: datetime | None = None
    state: SessionState | None = None
    config: SessionConfig | None = None
    origin: Fork | None = None
    """The session that it was forked from."""
    fork: Fork | None = None
    """The session to fork it from again: its origin, if that is imported before it and has the shared messages."""
    note: str = ""
    """How the imported session will differ from the original."""


class ImportSource(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    sessions: Callable[[], Iterator[SessionRecord]]
    is_independent: bool = False
    """Whether a damaged session leaves the others readable, as in a folder with one folder per session."""


def unreadable_session(session_id: str, error: HoldfastError) -> SessionRecord:
    """A record that raises `error` when its messages are read."""

    def messages() -> Iterator[NewMessage]:
        raise error

    return SessionRecord(session_id=session_id, messages=messages)


def with_safe_peer(message: NewMessage) -> NewMessage:
    """Return a message whose `peer_id` is a name. If the original was none, the metadata keeps it.

    Earlier versions stored any text there, and other programs may.
    """
    peer_id: str | None = message.peer_id
    if peer_id is None or is_name(peer_id):
        return message
    if not peer_id.strip():
        return msgspec.structs.replace(message, peer_id=None)
    metadata = message.metadata or {}
    provider_fields = metadata.get(PROVIDER_FIELDS, {})
    if isinstance(provider_fields, dict):
        metadata = {**metadata, PROVIDER_FIELDS: {"name": peer_id, **provider_fields}}
    return msgspec.structs.replace(message, peer_id=safe_name(peer_id), metadata=metadata)


def assign_id(message: NewMessage, number: int, own_id: Any, used_ids: set[str]) -> NewMessage:
    """Set the message's id: `own_id` if it is valid and unused, else an id made of its number and a content hash.

    The id is the same in every import, so that a second import finds the messages of the first.
    """
    content_hash = hashlib.sha256(_encode(message)).hexdigest()[:16]
    id = own_id if is_name(own_id) and own_id not in used_ids else f"import-{number:06d}-{content_hash}"  # noqa: A001
    used_ids.add(id)
    return msgspec.structs.replace(message, id=id)
