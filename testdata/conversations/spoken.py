"""Test conversations as messages, and vectors for their sentences that need no files."""

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

_BEGAN = 1_770_000_000_000


def spoken(*turns: Turn) -> list[Message]:
    """The turns as messages of a session, numbered from 1."""
    messages = []
    for seq, turn in enumerate(turns, start=1):
        parts = msgspec.convert(turn.get("parts") or [{"type": "text", "text": turn["content"]}], list[Part])
        made = datetime(2026, 3, 1, tzinfo=UTC)
        name = message_id(_BEGAN + seq, seq, 0xA11CE)
        messages.append(Message(name, turn["role"], parts, made, seq, tokens.of_parts(parts)))
    return messages


def hashed(texts: Sequence[str]) -> np.ndarray[Any, Any]:
    """Vectors from the words alone, the same everywhere."""
    matrix = np.zeros((len(texts), 64), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            matrix[row, crc32(word.encode()) % 64] += 1
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    np.divide(matrix, lengths, out=matrix, where=lengths > 0)
    return matrix
