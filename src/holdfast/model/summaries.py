"""What is kept of a conversation in short, and how a model is asked for it."""

import re
from typing import Any, Literal

import msgspec

from holdfast.model.base import WireStruct
from holdfast.model.messages import seq_from_id

Language = Literal["en", "zh"]
_CITED = re.compile(r'"sources":\[((?:"[^"\\]*",?)*)\]')
_ID = re.compile(r'"([^"]*)"')


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One statement of a summary, and the numbers of the messages it rests on."""

    text: str
    sources: list[int] = []
    weight: float = 1.0
    """How much it matters among its kind: where room is short, the least goes first."""
    call: str = ""
    """Of a tool call that waits for its result: what the result will refer to."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of conversation in short. `context.summary` renders it as L0 (a line) and L1 (an overview)."""

    language: Language = "en"
    topic: str = ""
    intent: str = ""
    result: str = ""
    status: str = ""
    steps: list[Line] = []
    """What was done, in order."""
    requests: list[Line] = []
    """What the user wanted."""
    concepts: list[Line] = []
    decisions: list[Line] = []
    constraints: list[Line] = []
    """The user's standing rules and preferences, word for word."""
    withdrawals: list[Line] = []
    """What was taken back of the rules of earlier stretches."""
    facts: list[Line] = []
    """Numbers, names, paths, ids and errors, literally."""
    values: list[Line] = []
    """What tools were asked and what they answered, with the names of the fields."""
    pending: list[Line] = []
    """What is still to be done."""
    answered_calls: list[str] = []
    """Tool calls of earlier stretches that got their result in this one."""


def cited_by_number(stored: str) -> str:
    """A stored summary whose lines cite messages by number; the first ones that were stored cite them by id.

    >>> cited_by_number('{"text":"a","sources":["msg_018bcfe5680000000007000000c0ffee","mine"]}')
    '{"text":"a","sources":[7]}'
    """
    return _CITED.sub(_numbered, stored) if '"sources":["' in stored else stored


def _numbered(found: re.Match[str]) -> str:
    seqs = [seq_from_id(id) for id in _ID.findall(found[1])]  # noqa: A001
    return f'"sources":[{",".join(str(seq) for seq in seqs if seq is not None)}]'


class TokenUsage(WireStruct, frozen=True):
    """What calls of a language model cost, as its provider counts."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        mine, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return TokenUsage(*(a + b for a, b in zip(mine, theirs, strict=True)))


class Cost(msgspec.Struct, frozen=True):
    """What a piece of work cost."""

    llm: TokenUsage = TokenUsage()
    embedding_tokens: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.llm + other.llm, self.embedding_tokens + other.embedding_tokens)


class EmbeddingUsage(WireStruct, frozen=True):
    total_tokens: int = 0


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What a language model is asked. With a `schema` the answer is to be JSON that fits it."""

    system: str
    user: str
    max_tokens: int
    schema: dict[str, Any] | None = None
    schema_name: str = "answer"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    usage: TokenUsage
    complete: bool = True
    """False if the model stopped because it was not allowed to say more."""
