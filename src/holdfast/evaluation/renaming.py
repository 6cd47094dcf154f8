"""The same data with other names and dates: a search that fits one data set only would find less in it. Pure functions.

Names of people are replaced by other names, the same in turns and questions of a conversation. All times are shifted by
a number of days: when messages were written, when questions are asked, and dates inside texts. Words relative to now,
such as "yesterday", stay as they are. Weekdays stay right if the number is a multiple of 7.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from holdfast.evaluation import names
from holdfast.evaluation.model import Conversation, Dataset, Question
from holdfast.evaluation.shifting import shift_dates
from holdfast.exchange.formats.records import SessionRecord
from holdfast.model.messages import NewMessage
from holdfast.model.parts import ImagePart, Part, TextPart

MIN_NICKNAME_CHARS = 3
_CAPITALISED = re.compile(r"(?<![A-Za-z])[A-Z][a-z]{1,30}(?![A-Za-z])")
_LOWER = re.compile(r"(?<![A-Za-z])[a-z]{2,31}(?![A-Za-z])")

Rewrite = Callable[[str, datetime | None], str]
"""Rewrites a text that was written at a time."""


def rename_and_shift(dataset: Dataset, *, rename: bool, days: int) -> Dataset:
    """Return the data set with other names, if `rename`, and with all dates shifted by a number of days."""
    conversations = [_change(conversation, rename=rename, days=days) for conversation in dataset.conversations]
    changes = [*(["renamed"] if rename else []), *([f"shifted by {days} days"] if days else [])]
    name = f"{dataset.name} ({', '.join(changes)})" if changes else dataset.name
    return Dataset(name=name, conversations=conversations, left_out=dataset.left_out)


def _change(conversation: Conversation, *, rename: bool, days: int) -> Conversation:
    renamed = name_table(conversation) if rename else {}
    shift = timedelta(days=days)

    def rewrite(text: str, written_at: datetime | None) -> str:
        if days:
            text = shift_dates(text, written_at or datetime(1970, 1, 1, tzinfo=UTC), days)
        return replace_names(text, renamed) if renamed else text

    return Conversation(
        name=conversation.name,
        sessions=[_change_session(record, rewrite, shift) for record in conversation.sessions],
        questions=[_change_question(question, rewrite, shift) for question in conversation.questions],
    )


def name_table(conversation: Conversation) -> dict[str, str]:
    """Return the other name of each name in a conversation.

    Names are those of the speakers, their short forms, and known first names. A word that also occurs in lower case is
    none, such as "will" or "car".
    """
    capitalised: Counter[str] = Counter()
    lower: set[str] = set()
    speakers: dict[str, None] = {}
    for text, speaker in _texts(conversation):
        capitalised.update(_CAPITALISED.findall(text))
        lower.update(_LOWER.findall(text))
        speakers |= dict.fromkeys(_CAPITALISED.findall(speaker or ""))
    known = [name for name in sorted(capitalised) if name in names.KNOWN and name.lower() not in lower]
    originals = list(dict.fromkeys([*speakers, *known]))
    free = [name for name in names.OTHERS if name not in capitalised]
    table = dict(zip(originals, _spread(free, len(originals)), strict=False))
    for speaker in speakers:
        for word in capitalised:
            is_short = MIN_NICKNAME_CHARS <= len(word) < len(speaker) and speaker.startswith(word)
            if is_short and word not in table and word.lower() not in lower and speaker in table:
                table[word] = table[speaker][: len(word)]
    return table


def replace_names(text: str, table: Mapping[str, str]) -> str:
    return _CAPITALISED.sub(lambda match: table.get(match[0], match[0]), text)


def _spread(free: list[str], count: int) -> list[str]:
    """Choose names from the whole list, so that few of them begin with the same letter."""
    step = max(1, len(free) // max(count, 1))
    chosen = free[::step]
    return chosen + [name for name in free if name not in chosen]


def _texts(conversation: Conversation) -> Iterator[tuple[str, str | None]]:
    for record in conversation.sessions:
        for message in record.messages():
            for part in message.parts or []:
                yield _text_of(part), message.peer_id
    for question in conversation.questions:
        yield question.text, None


def _text_of(part: Part) -> str:
    if isinstance(part, TextPart):
        return part.text
    return part.description if isinstance(part, ImagePart) else ""


def _change_session(record: SessionRecord, rewrite: Rewrite, shift: timedelta) -> SessionRecord:
    def messages() -> Iterator[NewMessage]:
        for message in record.messages():
            yield _change_message(message, rewrite, shift)

    created_at = record.created_at and record.created_at + shift
    return msgspec.structs.replace(record, messages=messages, created_at=created_at, metadata=None)


def _change_message(message: NewMessage, rewrite: Rewrite, shift: timedelta) -> NewMessage:
    def change_part(part: Part) -> Part:
        if isinstance(part, TextPart):
            return msgspec.structs.replace(part, text=rewrite(part.text, message.created_at))
        if isinstance(part, ImagePart):
            return msgspec.structs.replace(part, description=rewrite(part.description, message.created_at))
        return part

    return msgspec.structs.replace(
        message,
        parts=[change_part(part) for part in message.parts or []],
        peer_id=message.peer_id and rewrite(message.peer_id, message.created_at),
        created_at=message.created_at and message.created_at + shift,
    )


def _change_question(question: Question, rewrite: Rewrite, shift: timedelta) -> Question:
    return msgspec.structs.replace(
        question,
        text=rewrite(question.text, question.asked_at),
        asked_at=question.asked_at and question.asked_at + shift,
    )
