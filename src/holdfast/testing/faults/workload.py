"""Appends whose whole content follows from their name, and the ledger of what became of each."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.client.sync.client import Client
from holdfast.errors import UnavailableError
from holdfast.model.messages import Appended

SHAPES = (
    ("text",),
    ("text", "text", "text"),
    ("output",),
    ("text", "shared output"),
)
"""What an append consists of, by its number: one message, a batch, a large tool output, one that others show too."""

SHARED_OUTPUT = "every writer shows this page " * 600
_WORDS = [
    "when",
    "the",
    "tide",
    "is",
    "out",
    "the",
    "limpet",
    "holds",
    "to",
    "its",
    "rock",
    "naïve",
    "狐狸",
    "été",
    "🐚",
    "and",
    "waits",
]


class Append(msgspec.Struct, frozen=True):
    """One call. With `keyed` it carries an idempotency key and may be made again after a failure."""

    session_id: str
    writer: str
    number: int
    keyed: bool = False

    @property
    def word(self) -> str:
        """A single word in every text index, found in each of its messages and in no others."""
        return f"{self.writer}n{self.number}"

    def marks(self) -> list[str]:
        """The first word of each of its messages, and the id of its tool call."""
        return [f"{self.word}m{place}" for place in range(len(self._shape))]

    def messages(self) -> list[dict[str, Any]]:
        return [self._message(kind, mark) for kind, mark in zip(self._shape, self.marks(), strict=True)]

    def output(self, place: int) -> str | None:
        """The large tool output that the message at `place` shows, if it shows one."""
        match self._shape[place]:
            case "output":
                # Now and then one that fills hundreds of pages and so brings about a checkpoint.
                size = 900_000 if self.number % 16 == 2 else 20_000
                # Without the word itself: the preview may end within it, and so with the word of another append.
                return (f"{hashlib.sha256(self.word.encode()).hexdigest()} found it. " * 20_000)[:size]
            case "shared output":
                return SHARED_OUTPUT
            case _:
                return None

    @property
    def _shape(self) -> tuple[str, ...]:
        return SHAPES[self.number % len(SHAPES)]

    def _message(self, kind: str, mark: str) -> dict[str, Any]:
        if kind == "text":
            draw = random.Random(mark)
            said = draw.choices(_WORDS, k=draw.randint(1, 60))
            return {"role": "user", "content": " ".join([mark, self.word, *said])}
        tool = {
            "type": "tool",
            "tool_id": mark,
            "tool_name": "search",
            "tool_input": {"query": self.word},
            "tool_output": self.output(self.marks().index(mark)),
            "tool_status": "completed",
        }
        return {"role": "tool", "parts": [tool]}


class Tried(msgspec.Struct, frozen=True, tag="tried"):
    """Noted before the call: from here on the messages may be there."""

    append: Append


class Acknowledged(msgspec.Struct, frozen=True, tag="acknowledged"):
    """Noted after the call returned: from here on the messages must be there."""

    word: str
    seq: int
    message_ids: list[str]


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    word: str
    message: str

    @property
    def certain(self) -> bool:
        """Whether the error promised that nothing was written."""
        return "unknown" not in self.message


Event = Tried | Acknowledged | Failed
Note = Callable[[Event], None]


class Ledger:
    """What was tried, acknowledged and refused, as one or many writers told it."""

    def __init__(self) -> None:
        self.tried: dict[str, Append] = {}
        self.acknowledged: dict[str, Acknowledged] = {}
        self._tries: Counter[str] = Counter()
        self._open: Counter[str] = Counter()

    def note(self, event: Event) -> None:
        match event:
            case Tried(append):
                self.tried[append.word] = append
                self._tries[append.word] += 1
                self._open[append.word] += 1
            case Acknowledged(word):
                self.acknowledged[word] = event
            case Failed(word) if event.certain:
                self._open[word] -= 1
            case Failed():
                pass

    def unanswered(self) -> list[Append]:
        """What was tried and not acknowledged, so far."""
        return [append for word, append in self.tried.items() if word not in self.acknowledged]

    def refused(self) -> set[str]:
        """What cannot be there: each time it was tried, the error said that nothing was written."""
        return {word for word in self.tried if word not in self.acknowledged and self._open[word] == 0}

    def sessions(self) -> list[str]:
        return sorted({append.session_id for append in self.tried.values()})

    def in_one_go(self, session_id: str, writer: str) -> list[Acknowledged]:
        """A writer's appends that were acknowledged at the first try, in that order."""
        return [
            event
            for word, event in self.acknowledged.items()
            if self._tries[word] == 1
            and self.tried[word].writer == writer
            and self.tried[word].session_id == session_id
        ]


def attempt(client: Client, append: Append, note: Note) -> bool:
    """Make the call and note what became of it: whether it was acknowledged."""
    note(Tried(append))
    try:
        result = _send(client, append)
    except UnavailableError as error:
        note(Failed(append.word, error.message))
        return False
    note(Acknowledged(append.word, result.seq, result.message_ids))
    return True


def retry_unanswered(client: Client, ledger: Ledger) -> None:
    """What a careful writer does after a failure: every call without an answer again, under its key."""
    for append in ledger.unanswered():
        if append.keyed:
            assert attempt(client, append, ledger.note), f"the retry of {append.word} failed"


def _send(client: Client, append: Append) -> Appended:
    key = append.word if append.keyed else None
    messages = append.messages()
    if len(messages) > 1:
        return client.batch_add_messages(append.session_id, messages, idempotency_key=key)
    return client.add_message(append.session_id, **messages[0], idempotency_key=key)
