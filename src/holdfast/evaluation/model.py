"""The data types of an evaluation."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal

import msgspec

from holdfast.evaluation.metrics import Scores
from holdfast.exchange.formats.records import SessionRecord
from holdfast.model.base import WireStruct

Level = Literal["turn", "session"]
ALL = "all"
"""The category of the figures of all questions."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    text: str
    category: str
    asked_at: datetime | None
    """The asker's now. Times in the question are relative to it."""
    turns: tuple[str, ...]
    """The ids of the messages that contain the evidence; empty if only their session is known."""
    sessions: tuple[str, ...]
    """The sessions that contain the evidence."""


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions of one user, and questions about them."""

    name: str
    """The id of the user who owns the sessions."""
    sessions: list[SessionRecord]
    questions: list[Question]


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    conversations: list[Conversation]
    left_out: int
    """The number of questions without evidence."""


class FoundTurn(msgspec.Struct, frozen=True):
    """A hit of a search."""

    turn: str
    session: str


Ask = Callable[[Conversation, Question], list[FoundTurn]]
"""Searches for the evidence of a question in a conversation; best first."""
ProgressCallback = Callable[[int, int, str], None]
"""Called with the number of steps done, the total, and what is being done."""


class Answer(WireStruct, frozen=True, kw_only=True):
    """What was found for a question."""

    conversation: str
    question_id: str
    question: str
    category: str
    evidence: list[str]
    evidence_sessions: list[str]
    found: list[str]
    found_sessions: list[str]
    rank: int | None
    """The rank of the first evidence turn, or of the first evidence session if no turn is known."""


class Figures(WireStruct, frozen=True, kw_only=True):
    """The means of the questions of a category."""

    level: Level
    category: str
    questions: int
    scores: Scores


class Report(WireStruct, frozen=True, kw_only=True):
    dataset: str
    settings: str
    """What was evaluated: the settings that differ from the defaults."""
    conversations: int
    left_out: int
    seconds_per_question: float
    """The median. The first search of a conversation also loads what it needs."""
    figures: list[Figures]
    answers: list[Answer]
    notes: list[str] = msgspec.field(default_factory=list)
    """Which questions were answered with which weights."""
