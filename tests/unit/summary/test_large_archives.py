"""Summaries of archives that are too large to be read completely."""

from datetime import UTC, datetime
from itertools import pairwise

from conversations.messages import hash_vectors
from holdfast.model.messages import Message, Role
from holdfast.model.parts import Part, TextPart, ToolPart
from holdfast.model.summaries import Summary
from holdfast.summary import extract_verbatim, reading_notes, summarise
from holdfast.summary.large_archives import MAX_CHARS, MAX_CHARS_OF_MESSAGE, limit_reading
from holdfast.text import tokens
from holdfast.text.sentences import MAX_MESSAGE_CHARS

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FILLER = "We looked at the next page of the report, and it was like the one before. "
RULE = "Never deploy on a Friday."


def message(seq: int, *parts: Part | str, role: Role = "user") -> Message:
    message_parts = [TextPart(part) if isinstance(part, str) else part for part in parts]
    return Message(f"m{seq}", role, message_parts, NOW, seq, tokens.count_parts(message_parts))


def large_archive(chars: int, **messages: Part | str) -> list[Message]:
    """Return messages with about `chars` characters. Those in `messages`, by name `at_<percent>`, replace others."""
    count = chars // 1_000
    contents: list[Part | str] = [FILLER * (1_000 // len(FILLER))] * count
    for name, content in messages.items():
        contents[count * int(name.removeprefix("at_")) // 100] = content
    return [message(seq, content) for seq, content in enumerate(contents, start=1)]


def rules(summary: Summary) -> list[str]:
    return [line.text for line in summary.constraints]


def test_an_archive_of_usual_size_is_read_completely() -> None:
    messages = large_archive(MAX_CHARS - 1_000)
    assert limit_reading(messages) is messages
    assert reading_notes(messages) == []


def test_of_a_large_archive_the_first_and_last_messages_and_some_between_are_read() -> None:
    messages = large_archive(10 * MAX_CHARS)
    limited = limit_reading(messages)
    read = [at for at, each in enumerate(limited) if each.parts]
    assert [each.seq for each in limited] == [each.seq for each in messages]
    assert 0.9 * MAX_CHARS <= sum(len(limited[at].text) for at in read) <= MAX_CHARS
    assert {0, 1, len(messages) - 2, len(messages) - 1} <= set(read)
    tenths = [len(messages) * tenth // 10 for tenth in range(11)]
    assert all(any(first <= at < last for at in read) for first, last in pairwise(tenths))


def test_a_note_says_how_much_of_a_large_archive_was_read() -> None:
    (note,) = reading_notes(large_archive(10 * MAX_CHARS))
    assert note.startswith("the archive is large: values and rules were read from ")
    assert note.endswith(f" of its {10 * MAX_CHARS // 1_000} messages")


def test_a_rule_anywhere_in_a_large_archive_is_kept() -> None:
    messages = large_archive(10 * MAX_CHARS, at_5=RULE, at_47="Always answer in French.", at_73=f"Hello. {RULE}")
    for summary in (summarise(messages, hash_vectors), extract_verbatim(messages)):
        assert set(rules(summary)) == {"Never deploy on a Friday", "Always answer in French"}


def test_open_calls_and_answers_anywhere_in_a_large_archive_are_found() -> None:
    call = ToolPart(tool_id="c1", tool_name="book_car", tool_input={"day": "Friday"}, tool_status="pending")
    answered = ToolPart(tool_id="c2", tool_name="get_order", tool_input={"order": 7}, tool_status="pending")
    answer = ToolPart(tool_id="c2", tool_output="shipped", tool_status="completed")
    messages = large_archive(10 * MAX_CHARS, at_41=call, at_43=answered, at_61=answer)
    assert not limit_reading(messages)[len(messages) * 41 // 100].parts
    for summary in (summarise(messages, hash_vectors), extract_verbatim(messages)):
        assert [line.call for line in summary.pending if line.call] == ["c1"]


def test_of_a_message_with_many_long_parts_the_first_and_the_last_are_read() -> None:
    parts = [f"Part {number}. " + "a " * (MAX_MESSAGE_CHARS // 2 - 10) for number in range(50)]
    (limited,) = limit_reading([message(1, RULE, *parts, "Always answer in French.")])
    assert sum(len(part.text) for part in limited.parts if isinstance(part, TextPart)) <= MAX_CHARS_OF_MESSAGE
    assert limited.text.startswith(f"{RULE}\nPart 0.")
    assert limited.text.endswith("Always answer in French.")
    assert len(limited.parts) > 3


def test_many_short_messages_count_more_than_their_characters() -> None:
    messages = [message(seq, "ok") for seq in range(1, 20_001)]
    assert sum(bool(each.parts) for each in limit_reading(messages)) < 5_000
