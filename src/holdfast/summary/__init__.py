"""A stretch of conversation in short, from its own sentences: no model, no network, every line with its sources."""

from collections.abc import Callable, Sequence

from holdfast.model.messages import Message
from holdfast.model.summaries import Line, Summary
from holdfast.summary.local import extraction
from holdfast.summary.local.ranking import Embed
from holdfast.summary.merging import as_of, combine, fold, with_late
from holdfast.summary.rendering import Rendered, render, render_rolling, roll_abstract

__all__ = [
    "Embed",
    "Rendered",
    "as_of",
    "combine",
    "conversation",
    "fold",
    "open_calls",
    "render",
    "render_rolling",
    "roll_abstract",
    "summarise",
    "verbatim",
    "with_late",
]


def nothing() -> None:
    """Do not yield."""


def summarise(
    messages: Sequence[Message],
    embed: Embed,
    yield_cpu: Callable[[], None] = nothing,
    waiting: Sequence[Line] = (),
) -> Summary:
    """What was wanted, done, decided, ruled, found and left open in these messages, in their own words.

    `embed` gives each text a vector of length one, and is called at most once.
    `yield_cpu` is called often, so that other threads can run. System messages are not part of the conversation.
    `waiting` are the open calls of the stretches before, which may be answered here.
    """
    return extraction.extract(conversation(messages), embed, yield_cpu, waiting)


def verbatim(
    messages: Sequence[Message], yield_cpu: Callable[[], None] = nothing, waiting: Sequence[Line] = ()
) -> Summary:
    """The part of a summary that no model may change or forget: rules, values of tools, calls without a result."""
    return extraction.verbatim(conversation(messages), yield_cpu, waiting)


def open_calls(summaries: Sequence[Summary]) -> list[Line]:
    """The calls of consecutive stretches that have no result yet."""
    return [line for line in combine(summaries).pending if line.call]


def conversation(messages: Sequence[Message]) -> list[Message]:
    """The messages without those of the system, which a context shows apart."""
    return [message for message in messages if message.role != "system"]
