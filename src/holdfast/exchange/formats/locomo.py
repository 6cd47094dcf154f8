"""LoCoMo: very long conversations of two people, in sessions, for measuring memory. Pure functions.

Each session of each sample becomes a session. The two are people, so both are users, told apart by `peer_id`; messages
keep their `dia_id`, so that the evidence of a question names them. Questions and summaries are not imported: they hold
the answers.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from holdfast.errors import InvalidArgumentError, shown
from holdfast.exchange.formats.records import SessionRecord, named
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


def read_locomo(where: str, given: Any, name: str) -> Iterator[SessionRecord]:
    """The sessions of a sample; `name` is the sample's if it has none of its own."""
    if not is_locomo(given):
        raise InvalidArgumentError(where, f"{shown(given)} is not a sample of LoCoMo; it has a conversation")
    conversation = given["conversation"]
    sample = given["sample_id"] if is_name(given.get("sample_id")) else name
    speakers = [conversation[key] for key in ("speaker_a", "speaker_b") if isinstance(conversation.get(key), str)]
    found = filter(None, map(_SESSION.fullmatch, conversation))
    for number, key in sorted((int(name[1]), name[0]) for name in found):
        turns = conversation[key]
        if not isinstance(turns, list):
            raise InvalidArgumentError(f"{where}, {key}", f"{shown(turns)} is not a list of turns")
        if not turns:
            continue
        date = conversation.get(f"{key}_date_time")
        at = read_date(f"{where}, {key}_date_time", date)
        yield SessionRecord(
            session_id=f"{sample}-{key}",
            messages=_stream(f"{where}, {key}", turns, at),
            title=f"{sample}, session {number}",
            metadata={"sample_id": sample, "session": number, "speakers": speakers, "date": date},
            created_at=at,
        )


def read_date(where: str, text: Any) -> datetime | None:
    """The time of a session, which LoCoMo writes in words.

    >>> read_date("session_1_date_time", "1:56 pm on 8 May, 2023")
    datetime.datetime(2023, 5, 8, 13, 56, tzinfo=datetime.timezone.utc)
    """
    found = _DATE.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None or found[5].lower() not in MONTHS:
        return read_time(where, text)
    hour = int(found[1]) % 12 + (12 if found[3].lower() == "p" else 0)
    try:
        return datetime(
            int(found[6]), MONTHS.index(found[5].lower()) + 1, int(found[4]), hour, int(found[2]), tzinfo=UTC
        )
    except ValueError:
        raise InvalidArgumentError(where, f"{shown(text)} is not a time") from None


def _stream(where: str, turns: list[Any], at: datetime | None) -> Any:
    return lambda: _messages(where, turns, at)


def _messages(where: str, turns: list[Any], at: datetime | None) -> Iterator[NewMessage]:
    seen: set[str] = set()
    for number, turn in enumerate(turns, 1):
        if not isinstance(turn, dict) or not isinstance(turn.get("speaker"), str):
            raise InvalidArgumentError(f"{where}[{number - 1}]", f"{shown(turn)} is not a turn; it has a speaker")
        message = NewMessage(role="user", parts=_parts(turn), peer_id=turn["speaker"], created_at=at)
        yield named(message, number, turn.get("dia_id"), seen)


def _parts(turn: dict[str, Any]) -> list[Part]:
    said, caption, images = turn.get("text"), turn.get("blip_caption"), turn.get("img_url")
    urls = [images] if isinstance(images, str) else images if isinstance(images, list) else []
    parts: list[Part] = [TextPart(said if isinstance(said, str) else "")]
    if isinstance(caption, str) and not urls:
        parts.append(TextPart(f"[Image: {caption}]"))
    return parts + [ImagePart(url, caption if isinstance(caption, str) else "") for url in urls if isinstance(url, str)]
