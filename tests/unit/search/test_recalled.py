"""What a search recalled is recognised when an application adds it to a session."""

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.model.messages import Message
from holdfast.model.parts import ContextPart, Part, TextPart, ToolPart
from holdfast.search.results.message_texts import readable_text
from holdfast.search.results.recalled import CLOSING, OPENING, is_recalled, own_parts

BLOCK = f"{OPENING}\n<memory>\nuser: We fly on Friday.\n</memory>\n{CLOSING}"


def message(*parts: Part, **fields: Any) -> Message:
    return Message("m1", "user", list(parts), datetime.now(UTC), 1, 10, **fields)


@pytest.mark.parametrize(
    "recalled",
    [
        message(TextPart(BLOCK)),
        message(TextPart(f"\n{BLOCK}\n\n"), TextPart(" ")),
        message(TextPart(f"{BLOCK}\n{BLOCK}")),
        message(TextPart(BLOCK[:80])),
        message(TextPart("Anything."), message_kind="recalled"),
        message(ContextPart("viking://user/ann/memories/x", "memory", "Ann likes tea.")),
        message(TextPart(BLOCK), ContextPart("viking://user/ann/memories/x")),
    ],
)
def test_a_recalled_message_has_nothing_new(recalled: Message) -> None:
    assert is_recalled(recalled)
    assert readable_text(recalled) == ""


@pytest.mark.parametrize(
    ("new", "text"),
    [
        (message(TextPart("When do we fly?")), "When do we fly?"),
        (message(TextPart(f"{BLOCK}\nWhen do we fly?")), "When do we fly?"),
        (message(TextPart("When?"), TextPart(BLOCK)), "When?"),
        (message(ContextPart("viking://x", "memory", "Tea."), TextPart("When?")), "When?"),
        (message(ToolPart(tool_name="clock", tool_output="9:00")), "[clock: 9:00]"),
        (message(TextPart("About </recalled> and <recalled>")), "About </recalled> and <recalled>"),
        (message(), ""),
        (message(TextPart(" ")), ""),
    ],
)
def test_what_is_new_in_a_message_is_kept(new: Message, text: str) -> None:
    assert not is_recalled(new)
    assert readable_text(new) == text


def test_parts_without_recalled_text_are_the_same_objects() -> None:
    text, call = TextPart("When?"), ToolPart(tool_name="clock")
    first, second = own_parts(message(text, call))
    assert (first is text, second is call) == (True, True)
