"""The token estimate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.context import tokens
from holdfast.parts import ContextPart, ImagePart, TextPart, ToolPart


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("你", 2),
        ("你好", 3),
        ("ab你好", 4),
        ("🦊", 2),
        ("éééé", 1),
        ("é", 1),
    ],
)
def test_the_estimate(text: str, cost: int) -> None:
    assert tokens.estimate(text) == cost


@given(st.text(), st.text())
def test_more_text_never_costs_less(text: str, more: str) -> None:
    assert tokens.estimate(text) <= tokens.estimate(text + more) <= tokens.estimate(text) + tokens.estimate(more) + 1


def test_a_message_costs_its_text_abstracts_and_tool_calls_but_not_its_images() -> None:
    text, context = TextPart("abcd" * 10), ContextPart("viking://a", "memory", "abcd" * 5)
    tool = ToolPart(tool_id="call", tool_name="name", tool_input={"a": 1}, tool_output="abcd" * 3)
    assert tokens.of_parts([text]) == 10
    assert tokens.of_parts([context]) == 5
    assert tokens.of_parts([tool]) == 1 + 1 + 2 + 3
    assert tokens.of_parts([ImagePart("https://a/b.png", "a long description")]) == 0
    assert tokens.of_parts([text, context, tool]) == 22
