"""Encoding of the files of a session."""

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.model.messages import Message
from holdfast.model.parts import ToolPart
from holdfast.model.sessions import SessionInfo, Usage
from holdfast.model.tree.files import Meta, Use, output_file_name

RELATIONS_HEADER = b'{"uses":['
"""Begins a `.relations.json`. Its rows follow, one per line."""

_encode = msgspec.json.Encoder().encode


def session_meta(info: SessionInfo) -> Meta:
    return Meta(
        session_id=info.session_id,
        uri=info.uri,
        title=info.title,
        metadata=info.metadata,
        state=info.state,
        created_at=info.created_at,
        message_count=info.total_message_count,
        forked_from=info.forked_from,
        memory_policy=info.memory_policy,
        auto_commit_policy=info.auto_commit_policy,
        memory_extraction_config=info.memory_extraction_config,
    )


def relation(usage: Usage) -> Use:
    """Return the row of a recorded use in `.relations.json`."""
    return Use(
        kind=usage.kind,
        uri=usage.uri,
        created_at=usage.created_at,
        input=usage.input,
        output=usage.output,
        success=usage.success,
    )


def tool_file_header(tool_id: str) -> bytes:
    """Return the beginning of a `tool.json`. Its rows follow, one per line."""
    return b'{"tool_id":' + _encode(tool_id) + b',"calls":['


def tool_call_rows(message: Message) -> Iterator[tuple[ToolPart, dict[str, Any]]]:
    """Yield each tool part of a message with its row in `tool.json`."""
    for number, part in enumerate(message.parts):
        if isinstance(part, ToolPart):
            position = {"message_id": message.id, "seq": message.seq, "part": number, "created_at": message.created_at}
            fields = {name: value for name, value in part.to_dict().items() if name not in {"type", "tool_id"}}
            output_file = {"output_file": output_file_name(part.tool_result_id)} if part.tool_result_id else {}
            yield part, {**position, **fields, **output_file}


def encode_pretty(value: Any) -> bytes:
    """Encode as indented JSON. Equal values give equal bytes, because the keys of dictionaries are sorted."""
    return msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2) + b"\n"
