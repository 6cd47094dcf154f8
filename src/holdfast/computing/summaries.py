"""The jobs of a commit: summaries of messages, and their texts."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast import summary
from holdfast.computing.job import Job, JobContext
from holdfast.model.messages import Message
from holdfast.model.summaries import Line, RenderedSummary, RollingSummary, Summary
from holdfast.summary.prompting import prompts
from holdfast.text import tokens

SMALL_ARCHIVE_TOKENS = 500
"""The overview of a larger archive must be smaller than the archive."""
MAX_OVERVIEW_SHARE = 0.39
"""Largest size of an overview without its rules, as a share of the conversation."""
MIN_OVERVIEW_TOKENS = 120


class EarlierSummaries(msgspec.Struct, frozen=True):
    """Summaries of the finished archives before an archive."""

    previous: Summary | None = None
    """Of the last finished archive before it."""
    before_previous: Summary | None = None
    """Of all archives before the previous one, combined."""
    abstract: str = ""
    """One line about the conversation so far."""


class LaterArchive(msgspec.Struct, frozen=True):
    """The latest finished archive of a session, if it is later than the archive that is finished now."""

    number: int
    summary: Summary | None
    earlier: Summary | None
    """The summary of all archives before it that were finished before it."""
    rendered: RenderedSummary


class MessagesToSummarise(msgspec.Struct, frozen=True):
    """Messages, and the summaries before them, whose open tool calls they may answer."""

    messages: list[Message]
    earlier: EarlierSummaries = EarlierSummaries()


class SummariesToCombine(msgspec.Struct, frozen=True):
    """The summaries that a model wrote of consecutive pieces of a conversation, and the conversation."""

    summaries: list[Summary]
    conversation: MessagesToSummarise


class MessagesToSplit(msgspec.Struct, frozen=True):
    messages: list[Message]
    max_tokens: int


class ReplyToParse(msgspec.Struct, frozen=True):
    """The reply of a model, and the messages that it was asked to summarise."""

    text: str
    messages: list[Message]


class TextLimits(msgspec.Struct, frozen=True):
    """The settings of the same names."""

    overview_tokens: int
    rules_tokens: int
    earlier_tokens: int
    token_counter: str


class SummaryToRender(msgspec.Struct, frozen=True):
    """The summary of an archive with `size` tokens, and the summaries of the archives around it."""

    summary: Summary
    first_seq: int
    last_seq: int
    size: int
    earlier: EarlierSummaries
    later: LaterArchive | None
    limits: TextLimits


class RenderedArchive(msgspec.Struct, frozen=True):
    own: RenderedSummary
    rolling: RollingSummary
    """The session's summary for the time when this archive is the latest."""
    later_rolling: RollingSummary | None
    """The session's summary up to the later archive, with this one inserted."""


def _summarise(input: MessagesToSummarise, context: JobContext) -> Summary:
    return summary.summarise(input.messages, context.embed, context.yield_cpu, _open_calls(input.earlier))


def _combine(input: SummariesToCombine, context: JobContext) -> Summary:
    """Combine the summaries of all pieces.

    Rules, values and open calls are extracted from the messages, because a model may drop or change them.
    """
    conversation = input.conversation
    combined = summary.combine(input.summaries)
    verbatim = summary.extract_verbatim(conversation.messages, context.yield_cpu, _open_calls(conversation.earlier))
    return msgspec.structs.replace(
        summary.combine([combined, verbatim]), values=verbatim.values, answered_calls=verbatim.answered_calls
    )


def _open_calls(earlier: EarlierSummaries) -> list[Line]:
    return summary.open_calls([it for it in (earlier.before_previous, earlier.previous) if it is not None])


def _split(input: MessagesToSplit, _context: JobContext) -> list[list[Message]]:
    return prompts.split_into_chunks(input.messages, input.max_tokens)


def _parse_reply(input: ReplyToParse, _context: JobContext) -> Summary | None:
    return prompts.parse_reply(input.text, input.messages)


def _render(input: SummaryToRender, _context: JobContext) -> RenderedArchive:
    own = _render_own(input)
    earlier, later = input.earlier, input.later
    rolling = RollingSummary(None, own)
    if earlier.previous is not None:
        combined = summary.fold(earlier.before_previous, earlier.previous, input.limits.earlier_tokens)
        rolling = _render_rolling(input.limits, input.summary, own, combined)
    if later is None:
        return RenderedArchive(own, rolling, None)
    combined = summary.insert_late(
        later.earlier or Summary(), input.summary, input.first_seq, input.last_seq, input.limits.earlier_tokens
    )
    later_rolling = _render_rolling(input.limits, later.summary or Summary(), later.rendered, combined)
    return RenderedArchive(own, rolling, later_rolling)


def _render_own(input: SummaryToRender) -> RenderedSummary:
    """Render the overview of an archive: at most two fifths of the conversation's size, plus the rules."""
    limits, size = input.limits, input.size
    count = tokens.counter(limits.token_counter)
    bound = max(MIN_OVERVIEW_TOKENS, min(limits.overview_tokens, round(size * MAX_OVERVIEW_SHARE)))
    is_small = size <= SMALL_ARCHIVE_TOKENS
    # The overview must stay smaller than the archive even with rules.
    # The rolling summary includes the rules that do not fit, once a later archive is the latest.
    rules_bound = limits.rules_tokens if is_small else min(limits.rules_tokens, size * 3 // 5)
    rendered = summary.render(input.summary, bound, rules_bound)
    while not is_small and count(rendered.overview) >= size and bound > MIN_OVERVIEW_TOKENS:
        bound, rules_bound = bound * 2 // 3, rules_bound * 2 // 3
        rendered = summary.render(input.summary, bound, rules_bound)
    return RenderedSummary(
        rendered.abstract,
        rendered.overview,
        count(rendered.overview),
        rendered.rules_tokens,
        _source_seqs(rendered.left_out_rules),
    )


def _render_rolling(
    limits: TextLimits, archive_summary: Summary, rendered: RenderedSummary, earlier: Summary
) -> RollingSummary:
    """Render the session's summary up to an archive. `earlier` is the summary of all archives before it."""
    earlier = summary.update_earlier(earlier, archive_summary)
    latest = summary.SummaryText(rendered.abstract, rendered.overview, rendered.rules_tokens)
    rolling = summary.render_rolling(latest, earlier, limits.rules_tokens)
    count = tokens.counter(limits.token_counter)
    text = RenderedSummary(
        rolling.abstract,
        rolling.overview,
        count(rolling.overview),
        rules_left_out=[*_source_seqs(rolling.left_out_rules), *rendered.rules_left_out],
    )
    return RollingSummary(earlier, text)


def _source_seqs(lines: Sequence[Line]) -> list[int]:
    return sorted({seq for line in lines for seq in line.sources})


SUMMARISE = Job[MessagesToSummarise, Summary]("summarise", _summarise, MessagesToSummarise, Summary)
COMBINE = Job[SummariesToCombine, Summary]("combine", _combine, SummariesToCombine, Summary)
SPLIT = Job[MessagesToSplit, list[list[Message]]]("split", _split, MessagesToSplit, list[list[Message]])
PARSE_REPLY = Job[ReplyToParse, Summary | None]("parse reply", _parse_reply, ReplyToParse, Summary | None)
RENDER = Job[SummaryToRender, RenderedArchive]("render", _render, SummaryToRender, RenderedArchive)

JOBS: list[Job[Any, Any]] = [SUMMARISE, COMBINE, SPLIT, PARSE_REPLY, RENDER]
