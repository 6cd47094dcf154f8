"""Import one session: create it, complete it, leave it as it is, or reject it."""

from collections.abc import Callable, Iterator
from itertools import chain

import msgspec

from holdfast.client.sync.client import Client
from holdfast.errors import ConflictError
from holdfast.exchange.formats.records import SessionRecord, with_safe_peer
from holdfast.exchange.importing.comparison import (
    Batch,
    batches,
    different_fields,
    group_uses,
    same_json,
    same_message,
    same_use,
)
from holdfast.exchange.importing.creation import (
    create_session,
    find_session,
    is_unmodified_fork,
    metadata_update,
    null_keys_to_set,
)
from holdfast.exchange.layout import config_of
from holdfast.exchange.reports import ImportedSession, ImportState
from holdfast.model.messages import NewMessage
from holdfast.model.sessions import SessionInfo, SkillUse
from holdfast.model.tree.files import Use

PAGE_SIZE = 100

CountCallback = Callable[[int], None]
"""Called with the number of the session's messages that are done."""


def import_session(
    client: Client, record: SessionRecord, report_count: CountCallback, *, dry_run: bool
) -> ImportedSession:
    """Create the session of `record`, or add what is missing. Stored content is compared before anything changes."""
    messages = record.messages
    record = msgspec.structs.replace(record, messages=lambda: map(with_safe_peer, messages()))
    info = find_session(client, record.session_id)
    if info is None and dry_run:
        count = sum(1 for _ in record.messages())
        return _report(record, stored=0, added=count, state="imported", reason=record.note)
    is_new = False
    if info is None:
        info, is_new = create_session(client, record)
    inherited_fields = _require_same_fields(client, info, record)
    remaining = record.messages()
    stored = _require_same_messages(client, record, remaining, report_count)
    uses = record.uses()
    uses = uses[_require_same_uses(client, record, uses) :]
    missing_batches = batches(remaining)
    first_batch = next(missing_batches, None)  # read ahead: only this shows whether messages are missing
    _require_appendable(info, record, complete=first_batch is None and not uses)
    reason = _lost_origin_note(client, info, record)
    if not (is_new or first_batch or uses or inherited_fields or info.state != (record.state or info.state)):
        return _report(record, stored=stored, added=0, state="already there", reason=reason)
    missing_batches = chain([] if first_batch is None else [first_batch], missing_batches)
    if dry_run:
        count = sum(len(batch.messages) for batch in missing_batches)
        return _report(record, stored=stored, added=count, state="completed", reason=reason)
    if inherited_fields:
        _set_fork_fields(client, info, record)
    added = _append(client, record, stored, missing_batches, report_count)
    _record_uses(client, record, uses)
    if record.state == "archived" and info.state != "archived":
        client.update_session(record.session_id, state="archived")
    return _report(record, stored=stored, added=added, state="imported" if is_new else "completed", reason=reason)


def _report(record: SessionRecord, *, stored: int, added: int, state: ImportState, reason: str) -> ImportedSession:
    return ImportedSession(
        session_id=record.session_id, messages=stored + added, added=added, state=state, reason=reason
    )


def _require_same_fields(client: Client, info: SessionInfo, record: SessionRecord) -> list[str]:
    """Raise a ConflictError if the stored fields differ from those of the record.

    A fork to which nothing was added may still have the metadata and settings of its origin. Return these fields; the
    import sets them.
    """
    different = different_fields(info, record)
    if different and not (set(different) <= {"metadata", "settings"} and is_unmodified_fork(client, info, record)):
        raise _conflict(record, f"these fields differ: {', '.join(different)}")
    return different


def _require_appendable(info: SessionInfo, record: SessionRecord, *, complete: bool) -> None:
    if info.state == "active":
        return
    if record.state == "active":
        raise _conflict(record, "it is archived, but in the import it is active")
    if not complete:
        raise _conflict(record, "it is archived, but lacks messages or uses of the import")


def _require_same_messages(
    client: Client, record: SessionRecord, remaining: Iterator[NewMessage], report_count: CountCallback
) -> int:
    """Raise a ConflictError if the stored messages are not the first of `remaining`. Return how many are stored.

    These messages are consumed from `remaining`.
    """
    stored = 0
    first: int | None = 1
    while first is not None:
        page = client.get_messages(record.session_id, first, limit=PAGE_SIZE)
        for message in page.messages:
            imported = next(remaining, None)
            if imported is None:
                raise _conflict(record, f"it has more messages than the {stored} of the import")
            if not same_message(client, record.session_id, message, imported):
                raise _conflict(record, f"message {message.seq}, {message.id}, differs from the import")
            stored += 1
        report_count(stored)
        first = page.next_seq
    return stored


def _require_same_uses(client: Client, record: SessionRecord, uses: list[Use]) -> int:
    """Raise a ConflictError if the recorded uses are not the first of `uses`. Return how many are recorded."""
    recorded = 0
    after: str | None = None
    while True:
        page = client.list_usage(record.session_id, after=after, limit=PAGE_SIZE)
        for usage in page:
            if recorded == len(uses) or not same_use(usage, uses[recorded]):
                raise _conflict(record, f"its recorded use {recorded + 1}, of {usage.uri}, is not in the import")
            recorded += 1
        if len(page) < PAGE_SIZE:
            return recorded
        after = page[-1].id


def _lost_origin_note(client: Client, info: SessionInfo, record: SessionRecord) -> str:
    """Return why the stored session is not a fork although the original was one, or an empty string."""
    if record.origin is None or info.forked_from is not None or record.note:
        return record.note
    origin_id = record.origin.session_id
    origin = find_session(client, origin_id)
    if origin is None:
        return f"no longer a fork: its origin, {origin_id}, is not stored"
    if keys := null_keys_to_set(origin.metadata, record.metadata or {}):
        return (
            f"no longer a fork: its metadata has null for {', '.join(keys)}, unlike that of {origin_id};"
            " an update cannot set null"
        )
    return f"no longer a fork: the stored {origin_id} lacks the shared messages"


def _set_fork_fields(client: Client, info: SessionInfo, record: SessionRecord) -> None:
    """Replace the metadata and settings that a fork took over from its origin."""
    metadata = record.metadata or {}
    if not same_json(info.metadata, metadata):
        client.update_session(record.session_id, metadata=metadata_update(info.metadata, metadata))
    config = record.config
    if config is not None and not same_json(config, config_of(info)):
        client.update_session_config(
            record.session_id,
            memory_policy=config.memory_policy,
            auto_commit_policy=config.auto_commit_policy,
            memory_extraction_config=config.memory_extraction_config,
        )


def _append(
    client: Client, record: SessionRecord, stored: int, missing_batches: Iterator[Batch], report_count: CountCallback
) -> int:
    added = 0
    for batch in missing_batches:
        client.batch_add_messages(
            record.session_id, batch.messages, idempotency_key=batch.idempotency_key, expected_seq=stored + added
        )
        added += len(batch.messages)
        report_count(stored + added)
    return added


def _record_uses(client: Client, record: SessionRecord, uses: list[Use]) -> None:
    for group in group_uses(uses):
        contexts = [use.uri for use in group if use.kind == "context"]
        skills = [SkillUse(use.uri, use.input, use.output, use.success) for use in group if use.kind == "skill"]
        client.session_used(
            record.session_id, contexts or None, skills[0] if skills else None, created_at=group[0].created_at
        )


def _conflict(record: SessionRecord, difference: str) -> ConflictError:
    return ConflictError(
        f"Session {record.session_id} already exists with different content: {difference};"
        " delete it, or import this session alone under another id",
        resource=record.session_id,
        type="session",
    )
