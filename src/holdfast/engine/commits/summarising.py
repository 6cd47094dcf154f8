"""Summarise the messages of an archive, with a language model or locally."""

from bisect import bisect_left, bisect_right
from functools import partial

import msgspec

from holdfast import summary
from holdfast.computing.summaries import (
    COMBINE,
    PARSE_REPLY,
    SPLIT,
    SUMMARISE,
    EarlierSummaries,
    MessagesToSplit,
    MessagesToSummarise,
    ReplyToParse,
    SummariesToCombine,
)
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.errors import HoldfastError
from holdfast.model.messages import Message
from holdfast.model.summaries import Cost, Summary, replace_source_ids
from holdfast.providers.limits import RateLimitedModel
from holdfast.summary.prompting import prompts
from holdfast.validation import prebuild_decoder

LOCAL = "local"
MIN_TOKEN_RATIO = 0.5
"""A lower ratio of counted to estimated tokens is not trusted, because pieces would become too large."""
MAX_EARLIER_CHARS = 600
"""The length of the summary of the conversation so far that a prompt contains."""
NO_COST = Cost()


@prebuild_decoder
class SummaryResult(msgspec.Struct, frozen=True):
    """Output of a summarising step. It is checkpointed, so its encoded field names must not change."""

    summary: Summary
    summarised_by: str = msgspec.field(name="by")
    """The name of the model, or `local`."""
    notes: list[str] = []
    """Problems that occurred."""


class Conversation(msgspec.Struct, frozen=True):
    """The messages of an archive without system messages, in two forms."""

    with_previews: list[Message]
    """Large tool outputs are cut to marked previews, as a model reads them."""
    with_outputs: list[Message]
    """Large tool outputs are complete, within limits."""
    earlier: EarlierSummaries = EarlierSummaries()
    """Summaries of the conversation before the archive."""


def summarise_archive(
    claimed: ClaimedTask, conversation: Conversation, *, prefix: str = "", further_steps: int = 1
) -> SummaryResult:
    """Summarise an archive. Each call of a model is a checkpointed step, so that no call is paid for twice.

    The names of the steps begin with `prefix`. After them, `further_steps` steps follow.
    """
    model = claimed.models.language_model
    messages = conversation.with_previews
    if model is None or not messages:
        to_summarise = MessagesToSummarise(conversation.with_outputs, conversation.earlier)
        summarise = partial(_summarise_locally, claimed, to_summarise)
        return claimed.run_step(f"{prefix}summarise", SummaryResult, summarise, replace_source_ids)
    # The model's tokens may be larger or smaller than the estimated ones; the ratio is measured from its usage figures.
    input_tokens = round(claimed.settings.model_input_tokens / max(model.token_ratio, MIN_TOKEN_RATIO))
    longest_earlier = "of " * (MAX_EARLIER_CHARS // 3)  # of short words, so that few summaries have more tokens
    piece_tokens = prompts.tokens_for_messages(input_tokens, longest_earlier)
    pieces = claimed.compute(SPLIT, MessagesToSplit(messages, piece_tokens))
    # The split also truncates a message that is too long for one call.
    truncated = [message for piece in pieces for message in piece]
    plan = f"{prefix}plan"
    last_seqs = claimed.run_step(plan, list[int], lambda: ([piece[-1].seq for piece in pieces], NO_COST))
    claimed.plan_steps([f"{prefix}summarise {number}" for number in range(1, len(last_seqs) + 1)], further_steps)
    results: list[SummaryResult] = []
    seqs = [message.seq for message in truncated]
    first = messages[0].seq
    for number, last in enumerate(last_seqs, 1):
        piece = truncated[bisect_left(seqs, first) : bisect_right(seqs, last)]
        before = (
            summary.render(results[-1].summary, MAX_EARLIER_CHARS // 4).abstract
            if results
            else conversation.earlier.abstract
        )
        summarise = partial(_summarise_with_model, claimed, model, piece, before[:MAX_EARLIER_CHARS])
        results.append(claimed.run_step(f"{prefix}summarise {number}", SummaryResult, summarise, replace_source_ids))
        first = last + 1
    return _combine(claimed, results, conversation)


def _summarise_locally(claimed: ClaimedTask, conversation: MessagesToSummarise) -> tuple[SummaryResult, Cost]:
    embedder = claimed.models.new_embedder()
    local_summary = claimed.compute(SUMMARISE, conversation, embedder.embed)
    notes = [*embedder.notes, *summary.reading_notes(conversation.messages)]
    return SummaryResult(local_summary, LOCAL, notes), Cost(embedding_tokens=embedder.tokens)


def _summarise_with_model(
    claimed: ClaimedTask, model: RateLimitedModel, messages: list[Message], earlier: str
) -> tuple[SummaryResult, Cost]:
    """Ask the model. If its answer is unusable, ask once more, then summarise locally."""
    prompt = prompts.build_prompt(messages, max_tokens=claimed.settings.model_output_tokens, earlier=earlier)
    reply = model.complete(prompt)
    cost = Cost(reply.usage)
    model_summary = claimed.compute(PARSE_REPLY, ReplyToParse(reply.text, messages))
    if model_summary is None:
        try:
            reply = model.complete(prompts.build_retry_prompt(prompt, reply))
        except HoldfastError:
            claimed.record_cost(cost)  # the step will run again, but the first call has been paid for
            raise
        cost += Cost(reply.usage)
        model_summary = claimed.compute(PARSE_REPLY, ReplyToParse(reply.text, messages))
    if model_summary is None:
        local_result, local_cost = _summarise_locally(claimed, MessagesToSummarise(messages))
        note = f"{model.name} gave no usable answer for messages {messages[0].seq} to {messages[-1].seq}, twice"
        return msgspec.structs.replace(local_result, notes=[note, *local_result.notes]), cost + local_cost
    return SummaryResult(model_summary, model.name), cost


def _combine(claimed: ClaimedTask, results: list[SummaryResult], conversation: Conversation) -> SummaryResult:
    to_summarise = MessagesToSummarise(conversation.with_outputs, conversation.earlier)
    combined = claimed.compute(COMBINE, SummariesToCombine([result.summary for result in results], to_summarise))
    models = sorted({result.summarised_by for result in results} - {LOCAL})
    notes = [note for result in results for note in result.notes]
    notes += summary.reading_notes(conversation.with_outputs)
    return SummaryResult(combined, models[0] if models else LOCAL, notes)
