"""Summaries do not depend on the iteration order of sets, which differs between processes."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack

import msgspec

from conversations import CONVERSATIONS
from conversations.script import Turn, assistant, user

SEEDS = ("0", "1", "2")
PROGRAM = """
import sys

import msgspec

from conversations.messages import as_messages, hash_vectors
from holdfast.summary import render, summarise

conversations = msgspec.json.decode(sys.stdin.buffer.read())
overviews = [render(summarise(as_messages(*turns), hash_vectors), 1_500).overview for turns in conversations]
sys.stdout.buffer.write(msgspec.json.encode(overviews))
"""
EQUAL_CUE_WEIGHTS = [
    user("Please look into the nightly export: its upload error is still open."),
    assistant("The nightly export stops at the upload."),
    user("We decided to keep the nightly export, and its upload works again."),
    assistant("Good."),
]
"""The weights of request, error and pending have the same sum as those of decision and result.

A concept cites the first of the sentences with the highest weight.
"""
EQUAL_FACTS = [
    user(f"Depot {chr(97 + day) * 3}ville gets ORD-{7_000 + day} by 2026-03-{day + 1:02}, see /{day + 50}.csv today.")
    for day in range(26)
]
"""More sentences with literals of the same importance than the facts have lines. The first ones are shown."""


def test_a_summary_is_the_same_for_every_hash_seed() -> None:
    conversations = [EQUAL_CUE_WEIGHTS, EQUAL_FACTS, *(conversation.messages for conversation in CONVERSATIONS[::4])]
    expected, *others = overviews_by_seed(conversations)
    assert len(expected) == len(conversations)
    assert "- nightly export [#1]" in expected[0]
    assert all(f"[#{seq}]" in expected[1] for seq in range(1, 26))
    for overviews in others:
        assert overviews == expected


def overviews_by_seed(conversations: Sequence[list[Turn]]) -> list[list[str]]:
    """Return the overviews of the conversations for each seed. All seeds run at the same time."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    command,
                    env={**environment, "PYTHONHASHSEED": seed},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            for seed in SEEDS
        ]
        turns = msgspec.json.encode(conversations)
        outputs = [process.communicate(turns, timeout=60)[0] for process in processes]
    return [msgspec.json.decode(output, type=list[str]) for output in outputs]
