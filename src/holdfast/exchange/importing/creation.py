"""Making the session that messages will go into: new, or forked from one that is there."""

from typing import Any

from holdfast.client.sync.client import Client
from holdfast.errors import AlreadyExistsError, NotFoundError
from holdfast.exchange.formats.records import SessionRecord
from holdfast.exchange.importing.comparison import same_json, same_message
from holdfast.exchange.layout import config_of
from holdfast.model.sessions import Fork, SessionConfig, SessionInfo

PAGE = 100


def find(client: Client, session_id: str) -> SessionInfo | None:
    try:
        return client.get_session(session_id)
    except NotFoundError:
        return None


def make(client: Client, record: SessionRecord) -> tuple[SessionInfo, bool]:
    """The session, and whether it is new: somebody else may have been faster, perhaps an attempt of our own."""
    try:
        if record.fork is not None and _can_fork(client, record, record.fork):
            return _fork(client, record, record.fork), True
        config = record.config or SessionConfig()
        info = client.create_session(
            record.session_id,
            title=record.title or "",
            metadata=record.metadata,
            created_at=record.created_at,
            memory_policy=config.memory_policy,
            auto_commit_policy=config.auto_commit_policy,
            memory_extraction_config=config.memory_extraction_config,
        )
    except AlreadyExistsError:
        return client.get_session(record.session_id), False
    return info, True


def is_just_forked(client: Client, info: SessionInfo, record: SessionRecord) -> bool:
    """Whether the session is a fork as it begins: with its origin's metadata and settings, and nothing of its own."""
    if record.fork is None or info.forked_from != record.fork or info.total_message_count != record.fork.seq:
        return False
    origin = find(client, record.fork.session_id)
    return (
        origin is not None
        and info.state == "active"
        and info.contexts_used + info.skills_used == 0
        and any(same_json(info.metadata, metadata) for metadata in (origin.metadata, record.metadata))
        and any(same_json(config_of(info), config) for config in (config_of(origin), record.config))
    )


def change_of(have: dict[str, Any], want: dict[str, Any]) -> dict[str, Any]:
    """What to tell `update_session` so that metadata becomes what is wanted.

    >>> change_of({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3})
    {'b': 3, 'c': None}
    """
    changed = {key: value for key, value in want.items() if key not in have or not same_json(have[key], value)}
    return changed | {key: None for key in have if key not in want}


def _can_fork(client: Client, record: SessionRecord, fork: Fork) -> bool:
    """Whether the origin is here, has what they share, and the metadata can be made from its."""
    origin = find(client, fork.session_id)
    if origin is None or origin.total_message_count < fork.seq:
        return False
    change = change_of(origin.metadata, record.metadata or {})
    if any(value is None and key in (record.metadata or {}) for key, value in change.items()):
        return False  # None would remove the key that is to be null
    incoming = record.messages()
    first = 1
    while first <= fork.seq:
        page = client.get_messages(fork.session_id, first, fork.seq, limit=PAGE).messages
        if not page or not all(
            same_message(client, fork.session_id, held, given) for held, given in zip(page, incoming, strict=False)
        ):
            return False
        first = page[-1].seq + 1
    return True


def _fork(client: Client, record: SessionRecord, fork: Fork) -> SessionInfo:
    return client.fork_session(
        fork.session_id,
        fork.seq,
        new_session_id=record.session_id,
        title=record.title,
        created_at=record.created_at,
    )
