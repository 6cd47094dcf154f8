"""A stretch of conversation in short, from its own sentences: no model, no network, every line with its sources."""

from collections.abc import Callable, Sequence

from holdfast.context.summary.extraction import extract, rules_of
from holdfast.context.summary.merging import combine, fold
from holdfast.context.summary.ranking import Embed
from holdfast.context.summary.rendering import render, render_rolling, roll_abstract
from holdfast.model.messages import Message
from holdfast.model.summaries import Line, Summary

__all__ = ["Embed", "combine", "fold", "render", "render_rolling", "roll_abstract", "rules", "summarise"]


def nothing() -> None:
    """Take no breath."""


def summarise(messages: Sequence[Message], embed: Embed, breathe: Callable[[], None] = nothing) -> Summary:
    """What was wanted, done, decided, ruled, found and left open in these messages, in their own words.

    `embed` gives each text a vector of length one, and is called at most once.
    `breathe` is called often, so that the caller may let others run.
    """
    return extract(messages, embed, breathe)


def rules(messages: Sequence[Message], breathe: Callable[[], None] = nothing) -> list[Line]:
    """What users and systems said must always or never be done, word for word."""
    return rules_of([message for message in messages if message.role in {"user", "system"}], breathe)
