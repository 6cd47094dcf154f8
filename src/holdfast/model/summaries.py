"""What is kept of a conversation in short, and how a model is asked for it."""

from typing import Any, Literal

import msgspec

from holdfast.noun import Noun

Language = Literal["en", "zh"]


class Line(msgspec.Struct, frozen=True):
    """One statement of a summary, and the ids of the messages it rests on."""

    text: str
    sources: list[str] = []
    weight: float = 1.0
    """How much it matters among its kind: where room is short, the least goes first."""


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
    """What must always or never be done."""
    facts: list[Line] = []
    """Numbers, names, paths, ids and errors, literally."""
    pending: list[Line] = []
    """What is still to be done."""


class TokenUsage(Noun, frozen=True):
    """What calls of a language model cost, as its provider counts."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        mine, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return TokenUsage(*(a + b for a, b in zip(mine, theirs, strict=True)))


class Spent(msgspec.Struct, frozen=True):
    """What a piece of work cost."""

    llm: TokenUsage = TokenUsage()
    embedding_tokens: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.llm + other.llm, self.embedding_tokens + other.embedding_tokens)


class EmbeddingUsage(Noun, frozen=True):
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
