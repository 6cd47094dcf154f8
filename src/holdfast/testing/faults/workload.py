"""Appends whose content can be computed from their name, and a log of the result of each."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.client.sync.client import Client
from holdfast.errors import UnavailableError
from holdfast.model.messages import Appended

APPEND_KINDS = (
    ("text",),
    ("text", "text", "text"),
    ("output",),
    ("text", "shared output"),
)
"""The kinds of an append's messages: one message, a batch, a large tool output, an output that several appends share.

The number of an append selects one of them.
"""

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
    """One call. If `keyed`, it has an idempotency key and can be retried after a failure."""

    session_id: str
    writer: str
    number: int
    keyed: bool = False

    @property
    def name(self) -> str:
        """A unique word that is in each of its messages and in no others, also for the text index."""
        return f"{self.writer}n{self.number}"

    def labels(self) -> list[str]:
        """The label of each message: the first word of its text, or the id of its tool call."""
        return [f"{self.name}m{place}" for place in range(len(self._message_kinds))]

    def messages(self) -> list[dict[str, Any]]:
        return [self._message(kind, label) for kind, label in zip(self._message_kinds, self.labels(), strict=True)]

    def output(self, place: int) -> str | None:
        """Return the large tool output of the message at `place`, or None."""
        match self._message_kinds[place]:
            case "output":
                # Some outputs fill hundreds of pages and so cause a checkpoint.
                size = 900_000 if self.number % 16 == 2 else 20_000
                # Not the name itself: a preview that ends within the name could end with the name of another append.
                return (f"{hashlib.sha256(self.name.encode()).hexdigest()} found it. " * 20_000)[:size]
            case "shared output":
                return SHARED_OUTPUT
            case _:
                return None

    @property
    def _message_kinds(self) -> tuple[str, ...]:
        return APPEND_KINDS[self.number % len(APPEND_KINDS)]

    def _message(self, kind: str, label: str) -> dict[str, Any]:
        if kind == "text":
            rng = random.Random(label)
            words = rng.choices(_WORDS, k=rng.randint(1, 60))
            return {"role": "user", "content": " ".join([label, self.name, *words])}
        tool = {
            "type": "tool",
            "tool_id": label,
            "tool_name": "search",
            "tool_input": {"query": self.name},
            "tool_output": self.output(self.labels().index(label)),
            "tool_status": "completed",
        }
        return {"role": "tool", "parts": [tool]}


class Attempted(msgspec.Struct, frozen=True, tag="attempted"):
    """Recorded before the call: from then on the messages may be stored."""

    append: Append


class Acknowledged(msgspec.Struct, frozen=True, tag="acknowledged"):
    """Recorded after the call returned: from then on the messages must be stored."""

    name: str
    seq: int
    message_ids: list[str]


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    name: str
    message: str

    @property
    def nothing_written(self) -> bool:
        """Whether the error states that nothing was written."""
        return "unknown" not in self.message


Event = Attempted | Acknowledged | Failed
EventRecorder = Callable[[Event], None]


class AppendLog:
    """The attempts of one or more writers, and their results."""

    def __init__(self) -> None:
        self.attempted: dict[str, Append] = {}
        self.acknowledged: dict[str, Acknowledged] = {}
        self._attempt_counts: Counter[str] = Counter()
        self._maybe_written: Counter[str] = Counter()

    def record(self, event: Event) -> None:
        match event:
            case Attempted(append):
                self.attempted[append.name] = append
                self._attempt_counts[append.name] += 1
                self._maybe_written[append.name] += 1
            case Acknowledged(name):
                self.acknowledged[name] = event
            case Failed(name) if event.nothing_written:
                self._maybe_written[name] -= 1
            case Failed():
                pass

    def unacknowledged(self) -> list[Append]:
        """Return the appends that were attempted and not acknowledged."""
        attempted = list(self.attempted.items())  # a copy: other writers may go on
        return [append for name, append in attempted if name not in self.acknowledged]

    def not_written(self) -> set[str]:
        """Return the names of appends of which every attempt failed with nothing written."""
        return {name for name in self.attempted if name not in self.acknowledged and self._maybe_written[name] == 0}

    def sessions(self) -> list[str]:
        return sorted({append.session_id for append in self.attempted.values()})

    def first_try_results(self, session_id: str, writer: str) -> list[Acknowledged]:
        """Return the results of a writer's appends that succeeded at the first attempt, in order."""
        return [
            event
            for name, event in self.acknowledged.items()
            if self._attempt_counts[name] == 1
            and self.attempted[name].writer == writer
            and self.attempted[name].session_id == session_id
        ]


def attempt(client: Client, append: Append, record: EventRecorder) -> bool:
    """Make the call, record its result and return whether it was acknowledged."""
    record(Attempted(append))
    try:
        result = _send(client, append)
    except UnavailableError as error:
        record(Failed(append.name, error.message))
        return False
    record(Acknowledged(append.name, result.seq, result.message_ids))
    return True


def retry_unacknowledged(client: Client, append_log: AppendLog) -> None:
    """Retry every call that was not acknowledged and has a key, as a careful writer does after a failure."""
    for append in append_log.unacknowledged():
        if append.keyed:
            assert attempt(client, append, append_log.record), f"the retry of {append.name} failed"


def _send(client: Client, append: Append) -> Appended:
    key = append.name if append.keyed else None
    messages = append.messages()
    if len(messages) > 1:
        return client.batch_add_messages(append.session_id, messages, idempotency_key=key)
    return client.add_message(append.session_id, **messages[0], idempotency_key=key)
