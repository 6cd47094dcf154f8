"""What holds of every summary, whatever was said."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.messages import Message
from holdfast.model.parts import ContextPart, ImagePart, TextPart, ToolPart
from holdfast.model.summaries import Line, Summary
from holdfast.summary import Rendered, combine, fold, render, render_rolling, summarise
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
BITS = [
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
texts = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(BITS), max_size=12).map(" ".join))
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
talks = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "system", "tool"]), st.lists(parts, max_size=3)), max_size=8
)
lines = st.lists(st.builds(Line, texts, st.lists(st.integers(1, 10**9), max_size=4)), max_size=3)
summaries = st.builds(
    Summary,
    language=st.sampled_from(["en", "zh"]),
    topic=texts,
    intent=texts,
    result=texts,
    status=texts,
    steps=lines,
    requests=lines,
    concepts=lines,
    decisions=lines,
    constraints=lines,
    facts=lines,
    values=lines,
    pending=lines,
)


def messages_of(talk: list[Any]) -> list[Message]:
    made = datetime(2026, 3, 1, tzinfo=UTC)
    return [Message(f"m{seq}", role, held, made, seq, 1) for seq, (role, held) in enumerate(talk, start=1)]


def counted(given: Sequence[str]) -> np.ndarray[Any, Any]:
    return np.array([[len(text) % 7 + 1, 1.0] for text in given], dtype=np.float32).reshape(len(given), 2)


def is_sound(text: str) -> bool:
    """Every line is a heading of ours, a cited line or a word for nothing."""
    shown = [line for line in text.splitlines() if line]
    headings = [line for line in shown if line.startswith("#")]
    return headings == [each for each in HEADINGS if each in headings] and all(
        line.startswith(("#", "- ", "**One-line overview**: ", "None.", "无。")) for line in shown
    )


@given(talks, st.integers(60, 2_000))
def test_any_talk_fits_any_bound_in_a_sound_structure(talk: list[Any], bound: int) -> None:
    made = render(summarise(messages_of(talk), counted), bound)
    assert tokens.estimate(made.overview) <= bound + made.rules_tokens + made.calls_tokens
    assert is_sound(made.overview)
    assert len(made.abstract.splitlines()) == 1


@given(talks)
def test_lines_rest_on_messages_of_the_talk(talk: list[Any]) -> None:
    messages = messages_of(talk)
    summary = summarise(messages, counted)
    told = [*summary.steps, *summary.requests, *summary.concepts, *summary.decisions]
    told += [*summary.constraints, *summary.facts, *summary.values, *summary.pending]
    for line in told:
        assert line.sources
        assert set(line.sources) <= {message.seq for message in messages if message.role != "system"}


@given(talks)
def test_the_same_talk_gives_the_same_summary(talk: list[Any]) -> None:
    assert summarise(messages_of(talk), counted) == summarise(messages_of(talk), counted)


@given(summaries, st.integers(60, 1_000))
def test_a_summary_of_any_origin_is_rendered_within_its_bound(summary: Summary, bound: int) -> None:
    made = render(summary, bound)
    assert tokens.estimate(made.overview) <= bound + made.rules_tokens + made.calls_tokens
    assert is_sound(made.overview)
    assert len(made.abstract.splitlines()) == 1


@given(st.none() | summaries, summaries, st.integers(0, 600))
def test_what_is_folded_stays_within_its_bound(earlier: Summary | None, older: Summary, bound: int) -> None:
    made = render_rolling(Rendered("", ""), fold(earlier, older, bound))
    text = made.overview
    assert tokens.estimate(text) <= max(bound, 7) + made.rules_tokens + made.calls_tokens
    assert all(line.startswith(("## Earlier in This Session", "### ", "- ")) for line in text.splitlines() if line)


@given(st.lists(st.builds(Summary, values=lines), max_size=3))
def test_combining_loses_no_source_of_a_value(several: list[Summary]) -> None:
    before = {source for each in several for line in each.values for source in line.sources}
    assert {source for line in combine(several).values for source in line.sources} == before
