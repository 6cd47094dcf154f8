"""Compare stored sessions with imported ones, and batch messages. Pure, except for reading large tool outputs."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from holdfast.client.sync.client import Client
from holdfast.exchange.formats.records import SessionRecord, with_safe_peer
from holdfast.exchange.layout import config_of
from holdfast.model.messages import Message, NewMessage
from holdfast.model.parts import Part, ToolPart, as_text
from holdfast.model.sessions import SessionInfo, Usage
from holdfast.model.tree.files import Use

OUTPUT_PAGE_CHARS = 1_000_000
MAX_BATCH_MESSAGES = 100
MAX_BATCH_BYTES = 1_000_000
MAX_USES_PER_CALL = 1_000

_encode = msgspec.json.encode


class Batch(msgspec.Struct, frozen=True):
    """Messages to append in one call."""

    messages: list[NewMessage]
    idempotency_key: str


def batches(messages: Iterable[NewMessage]) -> Iterator[Batch]:
    """Split messages into batches that respect the limits of a call in number and in bytes."""
    batch: list[NewMessage] = []
    encoded: list[bytes] = []
    for message in messages:
        content = _encode(message)
        is_full = len(batch) == MAX_BATCH_MESSAGES or len(content) + sum(map(len, encoded)) > MAX_BATCH_BYTES
        if batch and is_full:
            yield _batch(batch, encoded)
            batch, encoded = [], []
        batch.append(message)
        encoded.append(content)
    if batch:
        yield _batch(batch, encoded)


def _batch(messages: list[NewMessage], encoded: list[bytes]) -> Batch:
    return Batch(messages, f"import-{hashlib.sha256(b','.join(encoded)).hexdigest()}")


def same_json(one: Any, other: Any) -> bool:
    """Compare as JSON. Unlike `==`, this distinguishes true from 1."""
    return _encode(one, order="deterministic") == _encode(other, order="deterministic")


def different_fields(info: SessionInfo, record: SessionRecord) -> list[str]:
    """The names of the fields that the record specifies and the stored session has with another value.

    State and messages are not compared.
    """
    pairs = {
        "title": (record.title, info.title),
        "metadata": (record.metadata, info.metadata),
        "settings": (record.config, config_of(info)),
        # A fork that was imported without its origin is stored as an ordinary session. That is accepted.
        "origin": (record.origin if info.forked_from else None, info.forked_from),
    }
    different = [
        name for name, (imported, stored) in pairs.items() if imported is not None and not same_json(imported, stored)
    ]
    if record.created_at not in {None, info.created_at}:
        different.append("time of creation")
    return different


def same_message(client: Client, session_id: str, stored: Message, imported: NewMessage) -> bool:
    parts = imported.parts or []
    kept = with_safe_peer(NewMessage(role=stored.role, peer_id=stored.peer_id, metadata=stored.metadata))
    return (
        (stored.role, kept.peer_id, stored.turn_id, stored.message_kind, stored.source_message_ids)
        == (imported.role, imported.peer_id, imported.turn_id, imported.message_kind, imported.source_message_ids)
        and same_json(kept.metadata, imported.metadata)
        and imported.id in {None, stored.id}
        and imported.created_at in {None, stored.created_at}
        and len(stored.parts) == len(parts)
        and all(_same_part(client, session_id, *pair) for pair in zip(stored.parts, parts, strict=True))
    )


def _same_part(client: Client, session_id: str, stored: Part, imported: Part) -> bool:
    if not isinstance(stored, ToolPart) or not isinstance(imported, ToolPart) or not stored.tool_result_id:
        return _encode(stored) == _encode(imported)
    output = as_text(imported.tool_output)
    with_preview = msgspec.structs.replace(
        imported,
        tool_output=stored.tool_output,
        tool_result_id=stored.tool_result_id,
        tool_output_chars=len(output),
    )
    return _encode(stored) == _encode(with_preview) and _same_output(client, session_id, stored.tool_result_id, output)


def _same_output(client: Client, session_id: str, tool_result_id: str, output: str) -> bool:
    offset, more = 0, True
    while more:
        piece = client.read_tool_result(session_id, tool_result_id, offset=offset, limit=OUTPUT_PAGE_CHARS)
        if output[offset : offset + len(piece.content)] != piece.content:
            return False
        offset, more = offset + len(piece.content), piece.has_more
    return offset == len(output)


def same_use(stored: Usage, imported: Use) -> bool:
    return (stored.kind, stored.uri, stored.success, stored.created_at) == (
        imported.kind,
        imported.uri,
        imported.success,
        imported.created_at,
    ) and _encode([stored.input, stored.output]) == _encode([imported.input, imported.output])


def group_uses(uses: list[Use]) -> Iterator[list[Use]]:
    """Group the uses that one call can record: contexts with the same time, then at most one skill with that time."""
    group: list[Use] = []
    for use in uses:
        fits = group and group[-1].kind == "context" and group[-1].created_at == use.created_at
        if group and (not fits or len(group) == MAX_USES_PER_CALL):
            yield group
            group = []
        group.append(use)
    if group:
        yield group
