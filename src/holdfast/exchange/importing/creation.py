"""Create the session that an import adds messages to: a new one, or a fork of an existing one."""

from typing import Any

from holdfast.client.sync.client import Client
from holdfast.errors import AlreadyExistsError, NotFoundError
from holdfast.exchange.formats.records import SessionRecord
from holdfast.exchange.importing.comparison import same_json, same_message
from holdfast.exchange.layout import config_of
from holdfast.model.sessions import Fork, SessionConfig, SessionInfo

PAGE_SIZE = 100


def find_session(client: Client, session_id: str) -> SessionInfo | None:
    try:
        return client.get_session(session_id)
    except NotFoundError:
        return None


def create_session(client: Client, record: SessionRecord) -> tuple[SessionInfo, bool]:
    """Create the session, and return it and whether it is new.

    It is not new if another process, or an earlier attempt of this call, created it first.
    """
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


def is_unmodified_fork(client: Client, info: SessionInfo, record: SessionRecord) -> bool:
    """Whether the session is the fork that `record` describes, and nothing was added to it since.

    An import that was interrupted after the fork leaves it in this state. Its metadata and its settings are still those
    of the origin, or already those of the record.
    """
    if record.fork is None or info.forked_from != record.fork or info.total_message_count != record.fork.seq:
        return False
    origin = find_session(client, record.fork.session_id)
    return (
        origin is not None
        and info.state == "active"
        and info.contexts_used + info.skills_used == 0
        and any(same_json(info.metadata, metadata) for metadata in (origin.metadata, record.metadata))
        and any(same_json(config_of(info), config) for config in (config_of(origin), record.config))
    )


def metadata_update(current: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The argument of `update_session` that changes the metadata from `current` to `wanted`.

    >>> metadata_update({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3})
    {'b': 3, 'c': None}
    """
    changed = {key: value for key, value in wanted.items() if key not in current or not same_json(current[key], value)}
    return changed | {key: None for key in current if key not in wanted}


def null_keys_to_set(current: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """The keys whose value would have to become null. No update can do that: in an update, None removes the key.

    >>> null_keys_to_set({"a": 1, "b": None, "c": 2}, {"a": None, "b": None})
    ['a']
    """
    return [key for key in metadata_update(current, wanted) if key in wanted and wanted[key] is None]


def _can_fork(client: Client, record: SessionRecord, fork: Fork) -> bool:
    """Whether the origin is stored with the shared messages, and an update can turn its metadata into the record's."""
    origin = find_session(client, fork.session_id)
    if origin is None or origin.total_message_count < fork.seq:
        return False
    if null_keys_to_set(origin.metadata, record.metadata or {}):
        return False
    imported_messages = record.messages()
    first = 1
    while first <= fork.seq:
        page = client.get_messages(fork.session_id, first, fork.seq, limit=PAGE_SIZE).messages
        if not page or not all(
            same_message(client, fork.session_id, stored, imported)
            for stored, imported in zip(page, imported_messages, strict=False)
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
