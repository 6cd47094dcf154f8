"""One session's way in: found as it is, made, completed or refused."""

from collections.abc import Callable, Iterator
from itertools import chain

from holdfast.client.sync.client import Client
from holdfast.errors import ConflictError
from holdfast.exchange.formats.records import SessionRecord
from holdfast.exchange.importing.comparison import (
    Batch,
    batches,
    different_fields,
    grouped,
    same_json,
    same_message,
    same_use,
)
from holdfast.exchange.importing.creation import change_of, find, is_just_forked, make
from holdfast.exchange.layout import config_of
from holdfast.exchange.reports import ImportedSession, State
from holdfast.model.files import Use
from holdfast.model.messages import NewMessage
from holdfast.model.sessions import SessionInfo, SkillUse

PAGE = 100

Told = Callable[[int], None]
"""Takes how many of a session's messages are done."""


def bring(client: Client, record: SessionRecord, told: Told, *, dry_run: bool) -> ImportedSession:
    """Make the session of `record`, or what is missing of it. All that is there is compared before any is changed."""
    info = find(client, record.session_id)
    if info is None and dry_run:
        count = sum(1 for _ in record.messages())
        return _row(record, held=0, added=count, state="imported", reason=record.note)
    fresh = False
    if info is None:
        info, fresh = make(client, record)
    unsettled = _require_same(client, info, record)
    incoming = record.messages()
    held = _compare_messages(client, record, incoming, told)
    uses = record.uses()
    uses = uses[_compare_uses(client, record, uses) :]
    missing = batches(incoming)
    first = next(missing, None)
    _require_open(info, record, complete=first is None and not uses)
    reason = _lost_origin(info, record)
    if not (fresh or first or uses or unsettled or info.state != (record.state or info.state)):
        return _row(record, held=held, added=0, state="already there", reason=reason)
    rest = chain([] if first is None else [first], missing)
    if dry_run:
        return _row(
            record, held=held, added=sum(len(batch.messages) for batch in rest), state="completed", reason=reason
        )
    if unsettled:
        _settle(client, info, record)
    added = _append(client, record, held, rest, told)
    _record_uses(client, record, uses)
    if record.state == "archived" and info.state != "archived":
        client.update_session(record.session_id, state="archived")
    return _row(record, held=held, added=added, state="imported" if fresh else "completed", reason=reason)


def _row(record: SessionRecord, *, held: int, added: int, state: State, reason: str) -> ImportedSession:
    return ImportedSession(session_id=record.session_id, messages=held + added, added=added, state=state, reason=reason)


def _require_same(client: Client, info: SessionInfo, record: SessionRecord) -> list[str]:
    """What is still to be set, as a fork begins with what its origin has; an error if anything else differs."""
    different = different_fields(info, record)
    if different and not (set(different) <= {"metadata", "settings"} and is_just_forked(client, info, record)):
        raise _other_content(record, f"these differ: {', '.join(different)}")
    return different


def _require_open(info: SessionInfo, record: SessionRecord, *, complete: bool) -> None:
    if info.state == "active":
        return
    if record.state == "active":
        raise _other_content(record, "it is archived, and was not")
    if not complete:
        raise _other_content(record, "it was archived before it had all that is imported")


def _compare_messages(client: Client, record: SessionRecord, incoming: Iterator[NewMessage], told: Told) -> int:
    """How many of the incoming messages are there; they are taken from `incoming`."""
    held = 0
    first: int | None = 1
    while first is not None:
        page = client.get_messages(record.session_id, first, limit=PAGE)
        for message in page.messages:
            given = next(incoming, None)
            if given is None:
                raise _other_content(record, f"it has more messages than the {held} of the import")
            if not same_message(client, record.session_id, message, given):
                raise _other_content(record, f"its message {message.seq}, {message.id}, differs from the import's")
            held += 1
        told(held)
        first = page.next_seq
    return held


def _compare_uses(client: Client, record: SessionRecord, uses: list[Use]) -> int:
    """How many of the uses are there."""
    held = 0
    after: str | None = None
    while True:
        page = client.list_usage(record.session_id, after=after, limit=PAGE)
        for usage in page:
            if held == len(uses) or not same_use(usage, uses[held]):
                raise _other_content(record, f"its recorded use {held + 1}, of {usage.uri}, is not in the import")
            held += 1
        if len(page) < PAGE:
            return held
        after = page[-1].id


def _lost_origin(info: SessionInfo, record: SessionRecord) -> str:
    if record.origin is None or info.forked_from is not None:
        return ""
    return record.note or f"no longer a fork: {record.origin.session_id} here does not have what they would share"


def _settle(client: Client, info: SessionInfo, record: SessionRecord) -> None:
    """Give a fork what is its own."""
    metadata = record.metadata or {}
    if not same_json(info.metadata, metadata):
        client.update_session(record.session_id, metadata=change_of(info.metadata, metadata))
    config = record.config
    if config is not None and not same_json(config, config_of(info)):
        client.update_session_config(
            record.session_id,
            memory_policy=config.memory_policy,
            auto_commit_policy=config.auto_commit_policy,
            memory_extraction_config=config.memory_extraction_config,
        )


def _append(client: Client, record: SessionRecord, held: int, rest: Iterator[Batch], told: Told) -> int:
    added = 0
    for batch in rest:
        client.batch_add_messages(
            record.session_id, batch.messages, idempotency_key=batch.key, expected_seq=held + added
        )
        added += len(batch.messages)
        told(held + added)
    return added


def _record_uses(client: Client, record: SessionRecord, uses: list[Use]) -> None:
    for group in grouped(uses):
        contexts = [use.uri for use in group if use.kind == "context"]
        skills = [SkillUse(use.uri, use.input, use.output, use.success) for use in group if use.kind == "skill"]
        client.session_used(
            record.session_id, contexts or None, skills[0] if skills else None, created_at=group[0].created_at
        )


def _other_content(record: SessionRecord, difference: str) -> ConflictError:
    return ConflictError(
        f"Session {record.session_id} is there with other content: {difference};"
        " delete it, or import this one by itself under another id",
        resource=record.session_id,
        type="session",
    )
