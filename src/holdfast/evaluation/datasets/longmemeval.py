"""LongMemEval: chats between a user and an assistant, with questions about the user. Pure functions.

Each question has its own haystack of sessions. Questions with the same haystack share a conversation.
"""

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any

import msgspec

from holdfast.errors import InvalidArgumentError
from holdfast.evaluation.model import Conversation, Dataset, Question
from holdfast.exchange.formats.records import SessionRecord
from holdfast.exchange.formats.times import read_time
from holdfast.model.base import is_name
from holdfast.model.messages import NewMessage
from holdfast.model.parts import TextPart
from holdfast.validation import convert

ABSTENTION = "_abs"
"""The end of the id of a question that the sessions do not answer."""
ROLES = {"user", "assistant", "system", "tool"}
MAX_ID_CHARS = 100

_DATE = re.compile(r"([0-9]{4})/([0-9]{2})/([0-9]{2}) \([A-Za-z]{3}\) ([0-9]{2}):([0-9]{2})")
_UNSAFE = re.compile(r"[^A-Za-z0-9._@-]")


class Turn(msgspec.Struct, frozen=True):
    role: str
    content: str
    has_answer: bool | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    question_id: str
    question_type: str
    question: str
    question_date: str | None = None
    haystack_session_ids: Annotated[list[str], msgspec.Meta(min_length=1)]
    haystack_dates: list[str]
    haystack_sessions: list[list[Turn]]
    answer_session_ids: list[str] = []


def read_dataset(rows: Any) -> Dataset:
    """Read the questions of a LongMemEval file. Abstention questions are left out."""
    if not isinstance(rows, list):
        raise InvalidArgumentError("file", "is not a list of questions in LongMemEval's format")
    parsed = [_parse_row(number, row) for number, row in enumerate(rows)]
    asked = [row for row in parsed if not row.question_id.endswith(ABSTENTION)]
    haystacks: dict[str, list[Row]] = {}
    for row in asked:
        haystacks.setdefault(_fingerprint(row), []).append(row)
    conversations = [_read_haystack(number, same) for number, same in enumerate(haystacks.values(), 1)]
    kept = sum(len(conversation.questions) for conversation in conversations)
    return Dataset(name="longmemeval", conversations=conversations, left_out=len(asked) - kept)


def read_date(where: str, text: str | None) -> datetime | None:
    """Parse a date as LongMemEval writes it, or in ISO 8601.

    >>> read_date("question_date", "2023/05/30 (Tue) 23:40")
    datetime.datetime(2023, 5, 30, 23, 40, tzinfo=datetime.timezone.utc)
    """
    match = _DATE.fullmatch(text.strip()) if text else None
    if match is None:
        return read_time(where, text)
    try:
        return datetime(*map(int, match.groups()), tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        raise InvalidArgumentError(where, f"{text!r} is not a time") from None


def _parse_row(number: int, row: Any) -> Row:
    try:
        parsed = convert(row, Row)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"[{number}]", error.message) from None
    if not len(parsed.haystack_session_ids) == len(parsed.haystack_dates) == len(parsed.haystack_sessions):
        raise InvalidArgumentError(f"[{number}]", "the haystack's ids, dates and sessions differ in their numbers")
    return parsed


def _fingerprint(row: Row) -> str:
    # `has_answer` depends on the question and is no part of the haystack.
    texts = [[(turn.role, turn.content) for turn in session] for session in row.haystack_sessions]
    haystack = msgspec.json.encode((row.haystack_session_ids, row.haystack_dates, texts))
    return hashlib.sha256(haystack).hexdigest()


def _read_haystack(number: int, rows: list[Row]) -> Conversation:
    row = rows[0]
    ids = _session_ids(row)
    sessions = [
        SessionRecord(
            session_id=session_id,
            messages=partial(_messages, session_id, session, created_at),
            title=session_id,
            metadata={"date": date},
            created_at=created_at,
        )
        for session_id, session, date in zip(ids, row.haystack_sessions, row.haystack_dates, strict=True)
        for created_at in [read_date(f"{row.question_id}, haystack_dates", date)]
        if session
    ]
    questions = [question for each in rows if (question := _read_question(each, ids)) is not None]
    return Conversation(name=f"haystack-{number:03}", sessions=sessions, questions=questions)


def _session_ids(row: Row) -> list[str]:
    """Return a valid and unique id for each session of a haystack."""
    ids: list[str] = []
    for number, given in enumerate(row.haystack_session_ids, 1):
        safe = _UNSAFE.sub("-", given)[:MAX_ID_CHARS]
        ids.append(safe if is_name(safe) and safe not in ids else f"session-{number:04}-{len(ids)}")
    return ids


def _messages(session_id: str, turns: list[Turn], created_at: datetime | None) -> Iterator[NewMessage]:
    """Return the turns as messages. They are a second apart, so that their times have their order."""
    for number, turn in enumerate(turns):
        yield NewMessage(
            id=_turn_id(session_id, number),
            role=turn.role if turn.role in ROLES else "user",  # type: ignore[arg-type]
            parts=[TextPart(turn.content)],
            created_at=created_at and created_at + timedelta(seconds=number),
        )


def _turn_id(session_id: str, number: int) -> str:
    return f"{session_id}:{number + 1}"


def _read_question(row: Row, ids: list[str]) -> Question | None:
    sessions = [
        session_id
        for session_id, given in zip(ids, row.haystack_session_ids, strict=True)
        if given in row.answer_session_ids
    ]
    turns = [
        _turn_id(session_id, number)
        for session_id, session in zip(ids, row.haystack_sessions, strict=True)
        for number, turn in enumerate(session)
        if turn.has_answer
    ]
    if not row.question.strip() or not (turns or sessions):
        return None
    return Question(
        id=row.question_id,
        text=row.question,
        category=row.question_type,
        asked_at=read_date(f"{row.question_id}, question_date", row.question_date),
        turns=tuple(turns),
        sessions=tuple(sessions or dict.fromkeys(turn.rsplit(":", 1)[0] for turn in turns)),
    )
