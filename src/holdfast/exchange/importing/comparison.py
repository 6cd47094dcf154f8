"""Whether what is in Holdfast is what an import brings. Pure but for reading large tool outputs."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from holdfast.client.sync.client import Client
from holdfast.exchange.formats.records import SessionRecord
from holdfast.exchange.layout import config_of
from holdfast.model.files import Use
from holdfast.model.messages import Message, NewMessage
from holdfast.model.parts import Part, ToolPart, as_text
from holdfast.model.sessions import SessionInfo, Usage

OUTPUT_PAGE = 1_000_000
BATCH = 100
BATCH_BYTES = 1_000_000

_encode = msgspec.json.encode


class Batch(msgspec.Struct, frozen=True):
    """Messages that go in together, and a key that tells them from all others."""

    messages: list[NewMessage]
    key: str


def batches(messages: Iterable[NewMessage]) -> Iterator[Batch]:
    """As many at once as a call takes, unless they are large."""
    gathered: list[NewMessage] = []
    encoded: list[bytes] = []
    for message in messages:
        said = _encode(message)
        if gathered and (len(gathered) == BATCH or len(said) + sum(map(len, encoded)) > BATCH_BYTES):
            yield _batch(gathered, encoded)
            gathered, encoded = [], []
        gathered.append(message)
        encoded.append(said)
    if gathered:
        yield _batch(gathered, encoded)


def _batch(messages: list[NewMessage], encoded: list[bytes]) -> Batch:
    return Batch(messages, f"import-{hashlib.sha256(b','.join(encoded)).hexdigest()}")


def same_json(one: Any, other: Any) -> bool:
    """Unlike `==` it tells true from 1."""
    return _encode(one, order="deterministic") == _encode(other, order="deterministic")


def different_fields(info: SessionInfo, record: SessionRecord) -> list[str]:
    """The names of what the record tells and the session has otherwise, but for its state and its messages."""
    pairs = {
        "title": (record.title, info.title),
        "metadata": (record.metadata, info.metadata),
        "settings": (record.config, config_of(info)),
        # A fork that was imported without its origin is a session like others, and may stay one.
        "origin": (record.origin if info.forked_from else None, info.forked_from),
    }
    different = [name for name, (told, held) in pairs.items() if told is not None and not same_json(told, held)]
    if record.created_at not in {None, info.created_at}:
        different.append("time of creation")
    return different


def same_message(client: Client, session_id: str, held: Message, given: NewMessage) -> bool:
    parts = given.parts or []
    return (
        (held.role, held.peer_id, held.turn_id, held.message_kind, held.source_message_ids)
        == (given.role, given.peer_id, given.turn_id, given.message_kind, given.source_message_ids)
        and same_json(held.metadata, given.metadata)
        and given.id in {None, held.id}
        and given.created_at in {None, held.created_at}
        and len(held.parts) == len(parts)
        and all(_same_part(client, session_id, was, part) for was, part in zip(held.parts, parts, strict=True))
    )


def _same_part(client: Client, session_id: str, held: Part, given: Part) -> bool:
    if not isinstance(held, ToolPart) or not isinstance(given, ToolPart) or not held.tool_result_id:
        return _encode(held) == _encode(given)
    whole = as_text(given.tool_output)
    shown = msgspec.structs.replace(
        given,
        tool_output=held.tool_output,
        tool_result_id=held.tool_result_id,
        tool_output_chars=len(whole),
    )
    return _encode(held) == _encode(shown) and _same_output(client, session_id, held.tool_result_id, whole)


def _same_output(client: Client, session_id: str, tool_result_id: str, whole: str) -> bool:
    offset, more = 0, True
    while more:
        piece = client.read_tool_result(session_id, tool_result_id, offset=offset, limit=OUTPUT_PAGE)
        if whole[offset : offset + len(piece.content)] != piece.content:
            return False
        offset, more = offset + len(piece.content), piece.has_more
    return offset == len(whole)


def same_use(held: Usage, given: Use) -> bool:
    return (held.kind, held.uri, held.success, held.created_at) == (
        given.kind,
        given.uri,
        given.success,
        given.created_at,
    ) and _encode([held.input, held.output]) == _encode([given.input, given.output])


def grouped(uses: list[Use]) -> Iterator[list[Use]]:
    """Uses that can be recorded by one call: contexts of one time, and behind them a skill of the same."""
    group: list[Use] = []
    for use in uses:
        fits = group and group[-1].kind == "context" and group[-1].created_at == use.created_at
        if group and (not fits or len(group) == 1_000):  # noqa: PLR2004 - as many as a call takes
            yield group
            group = []
        group.append(use)
    if group:
        yield group
