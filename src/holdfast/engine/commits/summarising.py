"""The step of a commit that needs the most: a summary of an archive, by a model or without one."""

from collections.abc import Sequence
from functools import partial

import msgspec

from holdfast import summary
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.models import cpu_yielder
from holdfast.errors import HoldfastError
from holdfast.model.messages import Message
from holdfast.model.summaries import Cost, Line, Summary
from holdfast.providers.limits import LimitedModel
from holdfast.summary.prompting import prompts

LOCAL = "local"
MIN_CORRECTION = 0.5
EARLIER_CHARS = 600
NOTHING = Cost()


class SummaryResult(msgspec.Struct, frozen=True):
    """A summary, who wrote it, and what went wrong on the way."""

    summary: Summary
    by: str
    notes: list[str] = []


class Conversation(msgspec.Struct, frozen=True):
    """The messages of an archive without those of the system: as a model is shown them, and with whole outputs."""

    shown: list[Message]
    whole: list[Message]
    waiting: list[Line] = []
    """Tool calls of earlier archives that have no result yet."""


def summarise_archive(claimed: ClaimedTask, conversation: Conversation, earlier: str) -> SummaryResult:
    """The summary of an archive. What a model is paid for is kept piece by piece.

    `earlier` tells in a line what the conversation was about before.
    """
    model = claimed.tools.model
    messages = conversation.shown
    if model is None or not messages:
        return claimed.once(
            "summarise", SummaryResult, lambda: _locally(claimed, conversation.whole, conversation.waiting)
        )
    # What the model counts as a token may be more or less than we estimate; its own figures tell.
    room = round(claimed.settings.model_input_tokens / max(model.correction, MIN_CORRECTION))
    most = prompts.room(room, "of " * (EARLIER_CHARS // 3))
    ends = claimed.once("plan", list[int], lambda: (_plan(messages, most), NOTHING))
    claimed.expect(len(ends) + 2)
    parts: list[SummaryResult] = []
    first = messages[0].seq
    for number, last in enumerate(ends, 1):
        piece = [message for message in messages if first <= message.seq <= last]
        said = [message for run in prompts.chunks(piece, most) for message in run]  # those too long for one call, cut
        told = earlier if not parts else summary.render(parts[-1].summary, EARLIER_CHARS // 4)[0]
        ask = partial(_ask, claimed, model, said, told[:EARLIER_CHARS])
        parts.append(claimed.once(f"summarise {number}", SummaryResult, ask))
        first = last + 1
    return _united(claimed, parts, conversation)


def _plan(messages: list[Message], most: int) -> list[int]:
    """The last message of each piece that the model reads at once."""
    return [piece[-1].seq for piece in prompts.chunks(messages, most)]


def _locally(claimed: ClaimedTask, messages: list[Message], waiting: Sequence[Line] = ()) -> tuple[SummaryResult, Cost]:
    yield_cpu = cpu_yielder(claimed.activity)
    vectors = claimed.tools.vectors(yield_cpu)
    with claimed.tools.computing():
        summarised = SummaryResult(summary.summarise(messages, vectors.embed, yield_cpu, waiting), LOCAL, vectors.notes)
    return summarised, Cost(embedding_tokens=vectors.tokens)


def _ask(
    claimed: ClaimedTask, model: LimitedModel, messages: list[Message], earlier: str
) -> tuple[SummaryResult, Cost]:
    """Ask; if the answer cannot be used, ask once more; then do it without the model."""
    prompt = prompts.ask(messages, max_tokens=claimed.settings.model_output_tokens, earlier=earlier)
    reply = model.complete(prompt)
    spent = Cost(reply.usage)
    understood = prompts.read(reply.text, messages)
    if understood is None:
        try:
            reply = model.complete(prompts.ask_again(prompt, reply))
        except HoldfastError:
            claimed.spend(spent)  # this step will be done again; what it cost so far is spent all the same
            raise
        spent += Cost(reply.usage)
        understood = prompts.read(reply.text, messages)
    if understood is None:
        summarised, local = _locally(claimed, messages)
        note = f"{model.name} gave no usable answer for messages {messages[0].seq} to {messages[-1].seq}, twice"
        return msgspec.structs.replace(summarised, notes=[note, *summarised.notes]), spent + local
    return SummaryResult(understood, model.name), spent


def _united(claimed: ClaimedTask, parts: list[SummaryResult], conversation: Conversation) -> SummaryResult:
    """One summary of all parts. Rules, values and open calls are kept whatever the model made of them."""
    whole = summary.combine([part.summary for part in parts])
    with claimed.tools.computing():
        fixed = summary.verbatim(conversation.whole, cpu_yielder(claimed.activity), conversation.waiting)
    kept = msgspec.structs.replace(
        summary.combine([whole, fixed]), values=fixed.values, answered_calls=fixed.answered_calls
    )
    by = sorted({part.by for part in parts} - {LOCAL}) or [LOCAL]
    return SummaryResult(kept, by[0], [note for part in parts for note in part.notes])
