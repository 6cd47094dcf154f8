"""Summaries of conversations. Every line names its source messages.

A summary is made locally, from the conversation's own sentences, or by a language model. This package makes no calls to
a model: `prompting` builds its prompts and parses its replies.
"""

from collections.abc import Callable, Sequence

from holdfast.model.messages import Message
from holdfast.model.summaries import Line, Summary
from holdfast.summary.large_archives import reading_notes
from holdfast.summary.local import extraction
from holdfast.summary.local.ranking import Embed
from holdfast.summary.merging import combine, fold, insert_late, update_earlier
from holdfast.summary.rendering import SummaryText, render, render_rolling, render_rolling_abstract

__all__ = [
    "Embed",
    "SummaryText",
    "combine",
    "extract_verbatim",
    "fold",
    "insert_late",
    "open_calls",
    "reading_notes",
    "render",
    "render_rolling",
    "render_rolling_abstract",
    "summarise",
    "update_earlier",
    "without_system_messages",
]


def do_not_yield() -> None:
    """Do nothing, where no other thread needs the CPU."""


def summarise(
    messages: Sequence[Message],
    embed: Embed,
    yield_cpu: Callable[[], None] = do_not_yield,
    earlier_open_calls: Sequence[Line] = (),
) -> Summary:
    """Summarise messages in their own words. System messages are ignored.

    `embed` returns a vector of length one for each text, and is called at most once.
    `yield_cpu` is called often, so that other threads can run.
    `earlier_open_calls` are the open calls of the messages before, which these messages may answer.
    """
    return extraction.extract_summary(without_system_messages(messages), embed, yield_cpu, earlier_open_calls)


def extract_verbatim(
    messages: Sequence[Message],
    yield_cpu: Callable[[], None] = do_not_yield,
    earlier_open_calls: Sequence[Line] = (),
) -> Summary:
    """Extract the lines that a model must not change or drop: rules, values of tool results, and open calls."""
    return extraction.extract_verbatim(without_system_messages(messages), yield_cpu, earlier_open_calls)


def open_calls(summaries: Sequence[Summary]) -> list[Line]:
    """Return the tool calls of consecutive summaries that have no result yet."""
    return [line for line in combine(summaries).pending if line.call]


def without_system_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the messages of a conversation without system messages, which a context shows separately."""
    return [message for message in messages if message.role != "system"]
