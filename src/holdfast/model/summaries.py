"""Summaries of conversations, and the prompts, replies and costs of language models."""

import re
from typing import Any, Literal

import msgspec

from holdfast.model.base import WireStruct
from holdfast.model.messages import seq_from_id

Language = Literal["en", "zh"]
_SOURCE_IDS = re.compile(r'"sources":\[((?:"[^"\\]*",?)*)\]')
_ID = re.compile(r'"([^"]*)"')


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a summary."""

    text: str
    sources: list[int] = []
    """The sequence numbers of the messages that it comes from."""
    weight: float = 1.0
    """Importance within its section. If not all lines fit, those with the lowest weight are left out."""
    call: str = ""
    """For an open tool call: the key that its result will refer to."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a part of a conversation, as it is stored.

    `summary.sections` has the titles, order and limits of its lists. `summary.rendering` renders it as text.
    """

    language: Language = "en"
    topic: str = ""
    intent: str = ""
    result: str = ""
    status: str = ""
    steps: list[Line] = []
    """The actions, in order."""
    requests: list[Line] = []
    """The user's requests."""
    concepts: list[Line] = []
    decisions: list[Line] = []
    constraints: list[Line] = []
    """The user's standing rules and preferences, word for word."""
    withdrawals: list[Line] = []
    """Withdrawals of rules that are in earlier summaries."""
    facts: list[Line] = []
    """Numbers, names, paths, ids and errors, copied exactly."""
    values: list[Line] = []
    """Arguments and results of tool calls, with the names of their fields."""
    pending: list[Line] = []
    """Items that are still to be done, and open tool calls."""
    answered_calls: list[str] = []
    """Keys of tool calls in earlier summaries whose results are in this part."""


class RenderedSummary(msgspec.Struct, frozen=True):
    """The text of a summary: of one archive, or of a session up to an archive (rolling)."""

    abstract: str
    overview: str
    overview_tokens: int
    rules_tokens: int = 0
    """Tokens that the rules take in the overview."""
    rules_left_out: list[int] = []
    """Sequence numbers of the messages with rules that did not fit."""


class RollingSummary(msgspec.Struct, frozen=True):
    """The summary of a session up to an archive."""

    earlier: Summary | None
    """The summary of all archives before it, if there are any."""
    text: RenderedSummary


def replace_source_ids(stored: str) -> str:
    """Replace message ids in the sources of stored JSON by sequence numbers. Unknown ids are dropped.

    The first version of the format cited messages by id.

    >>> replace_source_ids('{"text":"a","sources":["msg_018bcfe5680000000007000000c0ffee","mine"]}')
    '{"text":"a","sources":[7]}'
    """
    return _SOURCE_IDS.sub(_replace_ids, stored) if '"sources":["' in stored else stored


def _replace_ids(match: re.Match[str]) -> str:
    seqs = [seq_from_id(id) for id in _ID.findall(match[1])]  # noqa: A001
    return f'"sources":[{",".join(str(seq) for seq in seqs if seq is not None)}]'


class TokenUsage(WireStruct, frozen=True):
    """Tokens that calls of a language model used, as its provider counts them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        own, others = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return TokenUsage(*(a + b for a, b in zip(own, others, strict=True)))


class Cost(msgspec.Struct, frozen=True):
    """Tokens that a step of a task used."""

    llm: TokenUsage = TokenUsage()
    embedding_tokens: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.llm + other.llm, self.embedding_tokens + other.embedding_tokens)


class EmbeddingUsage(WireStruct, frozen=True):
    total_tokens: int = 0


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a language model. With a `schema` the reply must be JSON that matches it."""

    system: str
    user: str
    max_tokens: int
    schema: dict[str, Any] | None = None
    schema_name: str = "answer"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    usage: TokenUsage
    complete: bool = True
    """False if the model stopped at `max_tokens` or another limit."""
