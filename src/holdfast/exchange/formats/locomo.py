"""LoCoMo, a benchmark of long-term memory: very long conversations between two people. Pure functions.

Each session of each sample becomes a session. Both speakers are people, so both have the role `user`; `peer_id` names
the speaker. A message keeps its `dia_id` as its id, since the evidence of a question refers to it. Questions and
summaries are not imported, since they contain the answers.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from holdfast.errors import InvalidArgumentError, short_repr
from holdfast.exchange.formats.records import SessionRecord, assign_id
from holdfast.exchange.formats.times import read_time
from holdfast.model.base import is_name
from holdfast.model.messages import NewMessage
from holdfast.model.parts import ImagePart, Part, TextPart

MONTHS = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_SESSION = re.compile(r"session_(\d{1,9})")
_DATE = re.compile(r"(\d{1,2}):(\d\d) ?([ap])m on (\d{1,2}) (\w+),? (\d{4})", re.IGNORECASE)


def is_locomo(value: Any) -> bool:
    conversation = value.get("conversation") if isinstance(value, dict) else None
    return isinstance(conversation, dict) and any(map(_SESSION.fullmatch, conversation))


def read_locomo(where: str, sample: Any, name: str) -> Iterator[SessionRecord]:
    """Read the sessions of a sample. `name` is used if the sample has no valid id."""
    if not is_locomo(sample):
        raise InvalidArgumentError(where, f"{short_repr(sample)} is not a LoCoMo sample: it has no conversation")
    conversation = sample["conversation"]
    sample_id = sample["sample_id"] if is_name(sample.get("sample_id")) else name
    speakers = [conversation[key] for key in ("speaker_a", "speaker_b") if isinstance(conversation.get(key), str)]
    matches = filter(None, map(_SESSION.fullmatch, conversation))
    for number, key in sorted((int(match[1]), match[0]) for match in matches):
        turns = conversation[key]
        if not isinstance(turns, list):
            raise InvalidArgumentError(f"{where}, {key}", f"{short_repr(turns)} is not a list of turns")
        if not turns:
            continue
        date = conversation.get(f"{key}_date_time")
        created_at = read_date(f"{where}, {key}_date_time", date)
        yield SessionRecord(
            session_id=f"{sample_id}-{key}",
            messages=partial(_messages, f"{where}, {key}", turns, created_at),
            title=f"{sample_id}, session {number}",
            metadata={"sample_id": sample_id, "session": number, "speakers": speakers, "date": date},
            created_at=created_at,
        )


def read_date(where: str, text: Any) -> datetime | None:
    """Parse the time of a session, which LoCoMo writes in words.

    >>> read_date("session_1_date_time", "1:56 pm on 8 May, 2023")
    datetime.datetime(2023, 5, 8, 13, 56, tzinfo=datetime.timezone.utc)
    """
    match = _DATE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or match[5].lower() not in MONTHS:
        return read_time(where, text)
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    try:
        return datetime(
            int(match[6]), MONTHS.index(match[5].lower()) + 1, int(match[4]), hour, int(match[2]), tzinfo=UTC
        )
    except ValueError:
        raise InvalidArgumentError(where, f"{short_repr(text)} is not a time") from None


def _messages(where: str, turns: list[Any], created_at: datetime | None) -> Iterator[NewMessage]:
    used_ids: set[str] = set()
    for number, turn in enumerate(turns, 1):
        if not isinstance(turn, dict) or not isinstance(turn.get("speaker"), str):
            raise InvalidArgumentError(f"{where}[{number - 1}]", f"{short_repr(turn)} is not a turn: it has no speaker")
        message = NewMessage(role="user", parts=_parts(turn), peer_id=turn["speaker"], created_at=created_at)
        yield assign_id(message, number, turn.get("dia_id"), used_ids)


def _parts(turn: dict[str, Any]) -> list[Part]:
    text, caption, images = turn.get("text"), turn.get("blip_caption"), turn.get("img_url")
    urls = [images] if isinstance(images, str) else images if isinstance(images, list) else []
    parts: list[Part] = [TextPart(text if isinstance(text, str) else "")]
    if isinstance(caption, str) and not urls:
        parts.append(TextPart(f"[Image: {caption}]"))
    return parts + [ImagePart(url, caption if isinstance(caption, str) else "") for url in urls if isinstance(url, str)]
