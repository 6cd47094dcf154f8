"""Properties of all summaries, for arbitrary conversations."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.messages import Message
from holdfast.model.parts import ContextPart, ImagePart, TextPart, ToolPart
from holdfast.model.summaries import Line, Summary
from holdfast.summary import SummaryText, combine, fold, render, render_rolling, summarise
from holdfast.text import tokens

HEADINGS = [
    "# Session Summary",
    "## Analysis",
    "## Primary Request and Intent",
    "## Constraints",
    "## Decisions",
    "## Facts",
    "## Tool Results",
    "## Key Concepts",
    "## Pending Tasks",
]
FRAGMENTS = [
    "# Session Summary",
    "## Constraints",
    "- Never stop [#9]",
    "```",
    "\n",
    "\u2028",
    "Never",
    "must always",
    "不要重启数据库。",
    "必须",
    "🦊🦊",
    "مرحبا بالعالم",
    "/etc/app.conf",
    "ORD-7781",
    "1,386 rows",
    "decided to use",
    "still to do:",
    "|",
    "> quote",
    "1. item;",
    "What now?",
    "https://example.org/a?b=c",
    "\x00",
]
texts = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(FRAGMENTS), max_size=12).map(" ".join))
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
parts = st.one_of(
    st.builds(TextPart, texts),
    st.builds(ContextPart, st.just("viking://a"), st.just("memory"), texts),
    st.builds(ImagePart, st.just("file:///a.png"), texts),
    st.builds(
        ToolPart,
        st.just("call"),
        st.text(max_size=20),
        tool_input=json,
        tool_output=json,
        tool_status=st.sampled_from(["pending", "running", "completed", "error"]),
    ),
)
conversations = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "system", "tool"]), st.lists(parts, max_size=3)), max_size=8
)
line_lists = st.lists(st.builds(Line, texts, st.lists(st.integers(1, 10**9), max_size=4)), max_size=3)
summaries = st.builds(
    Summary,
    language=st.sampled_from(["en", "zh"]),
    topic=texts,
    intent=texts,
    result=texts,
    status=texts,
    steps=line_lists,
    requests=line_lists,
    concepts=line_lists,
    decisions=line_lists,
    constraints=line_lists,
    facts=line_lists,
    values=line_lists,
    pending=line_lists,
)


def as_messages(conversation: list[Any]) -> list[Message]:
    created_at = datetime(2026, 3, 1, tzinfo=UTC)
    return [
        Message(f"m{seq}", role, content, created_at, seq, 1)
        for seq, (role, content) in enumerate(conversation, start=1)
    ]


def length_vectors(sentences: Sequence[str]) -> np.ndarray[Any, Any]:
    return np.array([[len(text) % 7 + 1, 1.0] for text in sentences], dtype=np.float32).reshape(len(sentences), 2)


def is_well_formed(text: str) -> bool:
    """Return whether every line is a known heading, an item, the abstract or the text of an empty section."""
    shown = [line for line in text.splitlines() if line]
    headings = [line for line in shown if line.startswith("#")]
    return headings == [each for each in HEADINGS if each in headings] and all(
        line.startswith(("#", "- ", "**One-line overview**: ", "None.", "无。")) for line in shown
    )


@given(conversations, st.integers(60, 2_000))
def test_the_overview_of_any_conversation_fits_any_limit_and_is_well_formed(
    conversation: list[Any], max_tokens: int
) -> None:
    rendered = render(summarise(as_messages(conversation), length_vectors), max_tokens)
    assert tokens.estimate(rendered.overview) <= max_tokens + rendered.rules_tokens + rendered.calls_tokens
    assert is_well_formed(rendered.overview)
    assert len(rendered.abstract.splitlines()) == 1


@given(conversations)
def test_lines_cite_messages_of_the_conversation(conversation: list[Any]) -> None:
    messages = as_messages(conversation)
    summary = summarise(messages, length_vectors)
    lines = [*summary.steps, *summary.requests, *summary.concepts, *summary.decisions]
    lines += [*summary.constraints, *summary.facts, *summary.values, *summary.pending]
    for line in lines:
        assert line.sources
        assert set(line.sources) <= {message.seq for message in messages if message.role != "system"}


@given(conversations)
def test_the_same_conversation_gives_the_same_summary(conversation: list[Any]) -> None:
    assert summarise(as_messages(conversation), length_vectors) == summarise(as_messages(conversation), length_vectors)


@given(summaries, st.integers(60, 1_000))
def test_any_summary_is_rendered_within_its_limit(summary: Summary, max_tokens: int) -> None:
    rendered = render(summary, max_tokens)
    assert tokens.estimate(rendered.overview) <= max_tokens + rendered.rules_tokens + rendered.calls_tokens
    assert is_well_formed(rendered.overview)
    assert len(rendered.abstract.splitlines()) == 1


@given(st.none() | summaries, summaries, st.integers(0, 600))
def test_a_folded_summary_stays_within_its_limit(earlier: Summary | None, previous: Summary, max_tokens: int) -> None:
    rendered = render_rolling(SummaryText("", ""), fold(earlier, previous, max_tokens))
    text = rendered.overview
    assert tokens.estimate(text) <= max(max_tokens, 7) + rendered.rules_tokens + rendered.calls_tokens
    assert all(line.startswith(("## Earlier in This Session", "### ", "- ")) for line in text.splitlines() if line)


@given(st.lists(st.builds(Summary, values=line_lists), max_size=3))
def test_combining_loses_no_source_of_a_value(parts: list[Summary]) -> None:
    before = {source for each in parts for line in each.values for source in line.sources}
    assert {source for line in combine(parts).values for source in line.sources} == before
