"""Summarise the messages of an archive, with a language model or locally."""

from collections.abc import Sequence
from functools import partial

import msgspec

from holdfast import summary
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.cpu_yielding import make_yield_cpu
from holdfast.errors import HoldfastError
from holdfast.model.messages import Message
from holdfast.model.summaries import Cost, Line, Summary
from holdfast.providers.limits import RateLimitedModel
from holdfast.summary.prompting import prompts

LOCAL = "local"
MIN_TOKEN_RATIO = 0.5
MAX_EARLIER_CHARS = 600
NO_COST = Cost()


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
    open_calls: list[Line] = []
    """Tool calls of earlier archives that have no result yet."""


def summarise_archive(claimed: ClaimedTask, conversation: Conversation, earlier: str) -> SummaryResult:
    """Summarise an archive. Each call of a model is a checkpointed step, so that no call is paid for twice.

    `earlier` is a one-line summary of the conversation before the archive.
    """
    model = claimed.models.language_model
    messages = conversation.with_previews
    if model is None or not messages:
        summarise = partial(_summarise_locally, claimed, conversation.with_outputs, conversation.open_calls)
        return claimed.run_step("summarise", SummaryResult, summarise)
    # The model's tokens may be larger or smaller than the estimated ones; the ratio is measured from its usage figures.
    input_tokens = round(claimed.settings.model_input_tokens / max(model.token_ratio, MIN_TOKEN_RATIO))
    piece_tokens = prompts.tokens_for_messages(input_tokens, "of " * (MAX_EARLIER_CHARS // 3))
    pieces = prompts.split_into_chunks(messages, piece_tokens)
    # `split_into_chunks` also truncates a message that is too long for one call.
    truncated = [message for piece in pieces for message in piece]
    last_seqs = claimed.run_step("plan", list[int], lambda: ([piece[-1].seq for piece in pieces], NO_COST))
    claimed.set_total_steps(len(last_seqs) + 2)
    results: list[SummaryResult] = []
    first = messages[0].seq
    for number, last in enumerate(last_seqs, 1):
        piece = [message for message in truncated if first <= message.seq <= last]
        before = summary.render(results[-1].summary, MAX_EARLIER_CHARS // 4).abstract if results else earlier
        summarise = partial(_summarise_with_model, claimed, model, piece, before[:MAX_EARLIER_CHARS])
        results.append(claimed.run_step(f"summarise {number}", SummaryResult, summarise))
        first = last + 1
    return _combine(claimed, results, conversation)


def _summarise_locally(
    claimed: ClaimedTask, messages: list[Message], open_calls: Sequence[Line] = ()
) -> tuple[SummaryResult, Cost]:
    yield_cpu = make_yield_cpu(claimed.operation_count)
    embedder = claimed.models.new_embedder(yield_cpu)
    with claimed.models.compute_lock():
        local_summary = summary.summarise(messages, embedder.embed, yield_cpu, open_calls)
    return SummaryResult(local_summary, LOCAL, embedder.notes), Cost(embedding_tokens=embedder.tokens)


def _summarise_with_model(
    claimed: ClaimedTask, model: RateLimitedModel, messages: list[Message], earlier: str
) -> tuple[SummaryResult, Cost]:
    """Ask the model. If its answer is unusable, ask once more, then summarise locally."""
    prompt = prompts.build_prompt(messages, max_tokens=claimed.settings.model_output_tokens, earlier=earlier)
    reply = model.complete(prompt)
    cost = Cost(reply.usage)
    model_summary = prompts.parse_reply(reply.text, messages)
    if model_summary is None:
        try:
            reply = model.complete(prompts.build_retry_prompt(prompt, reply))
        except HoldfastError:
            claimed.record_cost(cost)  # the step will run again, but the first call has been paid for
            raise
        cost += Cost(reply.usage)
        model_summary = prompts.parse_reply(reply.text, messages)
    if model_summary is None:
        local_result, local_cost = _summarise_locally(claimed, messages)
        note = f"{model.name} gave no usable answer for messages {messages[0].seq} to {messages[-1].seq}, twice"
        return msgspec.structs.replace(local_result, notes=[note, *local_result.notes]), cost + local_cost
    return SummaryResult(model_summary, model.name), cost


def _combine(claimed: ClaimedTask, results: list[SummaryResult], conversation: Conversation) -> SummaryResult:
    """Combine the summaries of all pieces.

    Rules, values and open calls are extracted from the messages, because a model may drop or change them.
    """
    combined = summary.combine([result.summary for result in results])
    with claimed.models.compute_lock():
        yield_cpu = make_yield_cpu(claimed.operation_count)
        verbatim = summary.extract_verbatim(conversation.with_outputs, yield_cpu, conversation.open_calls)
    archive_summary = msgspec.structs.replace(
        summary.combine([combined, verbatim]), values=verbatim.values, answered_calls=verbatim.answered_calls
    )
    models = sorted({result.summarised_by for result in results} - {LOCAL})
    notes = [note for result in results for note in result.notes]
    return SummaryResult(archive_summary, models[0] if models else LOCAL, notes)
