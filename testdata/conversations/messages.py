"""Converts test conversations to messages, and computes sentence vectors without a model file."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

import msgspec
import numpy as np

from conversations.script import Turn
from holdfast.model.messages import Message, message_id
from holdfast.model.parts import Part
from holdfast.text import tokens

_FIRST_MESSAGE_MILLIS = 1_770_000_000_000


def as_messages(*turns: Turn) -> list[Message]:
    """Return the turns as messages of a session, numbered from 1."""
    messages = []
    for seq, turn in enumerate(turns, start=1):
        parts = msgspec.convert(turn.get("parts") or [{"type": "text", "text": turn["content"]}], list[Part])
        created_at = datetime(2026, 3, 1, tzinfo=UTC)
        new_id = message_id(_FIRST_MESSAGE_MILLIS + seq, seq, 0xA11CE)
        messages.append(Message(new_id, turn["role"], parts, created_at, seq, tokens.count_parts(parts)))
    return messages


def hash_vectors(texts: Sequence[str]) -> np.ndarray[Any, Any]:
    """Return a vector for each text, computed from hashes of its words. The result is the same on every machine."""
    matrix = np.zeros((len(texts), 64), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            matrix[row, crc32(word.encode()) % 64] += 1
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    np.divide(matrix, lengths, out=matrix, where=lengths > 0)
    return matrix
