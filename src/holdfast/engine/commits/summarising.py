"""The step of a commit that needs the most: a summary of an archive, by a model or without one."""

from collections.abc import Sequence
from functools import partial

import msgspec

from holdfast import summary
from holdfast.engine.tasks.claimed_task import Work
from holdfast.engine.tasks.models import breathing
from holdfast.errors import HoldfastError
from holdfast.model.messages import Message
from holdfast.model.summaries import Line, Spent, Summary
from holdfast.providers.limits import Limited
from holdfast.summary.prompting import prompts

LOCAL = "local"
LEAST_CORRECTION = 0.5
EARLIER_CHARS = 600
NOTHING = Spent()


class Drawn(msgspec.Struct, frozen=True):
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


def draw(work: Work, conversation: Conversation, earlier: str) -> Drawn:
    """The summary of an archive. What a model is paid for is kept piece by piece.

    `earlier` tells in a line what the conversation was about before.
    """
    model = work.tools.model
    messages = conversation.shown
    if model is None or not messages:
        return work.once("summarise", Drawn, lambda: _locally(work, conversation.whole, conversation.waiting))
    # What the model counts as a token may be more or less than we estimate; its own figures tell.
    room = round(work.settings.model_input_tokens / max(model.correction, LEAST_CORRECTION))
    most = prompts.room(room, "of " * (EARLIER_CHARS // 3))
    ends = work.once("plan", list[int], lambda: (_plan(messages, most), NOTHING))
    work.expect(len(ends) + 2)
    parts: list[Drawn] = []
    first = messages[0].seq
    for number, last in enumerate(ends, 1):
        piece = [message for message in messages if first <= message.seq <= last]
        said = [message for run in prompts.chunks(piece, most) for message in run]  # those too long for one call, cut
        told = earlier if not parts else summary.render(parts[-1].summary, EARLIER_CHARS // 4)[0]
        ask = partial(_ask, work, model, said, told[:EARLIER_CHARS])
        parts.append(work.once(f"summarise {number}", Drawn, ask))
        first = last + 1
    return _united(work, parts, conversation)


def _plan(messages: list[Message], most: int) -> list[int]:
    """The last message of each piece that the model reads at once."""
    return [piece[-1].seq for piece in prompts.chunks(messages, most)]


def _locally(work: Work, messages: list[Message], waiting: Sequence[Line] = ()) -> tuple[Drawn, Spent]:
    breathe = breathing(work.activity)
    vectors = work.tools.vectors(breathe)
    with work.tools.computing():
        drawn = Drawn(summary.summarise(messages, vectors.embed, breathe, waiting), LOCAL, vectors.notes)
    return drawn, Spent(embedding_tokens=vectors.tokens)


def _ask(work: Work, model: Limited, messages: list[Message], earlier: str) -> tuple[Drawn, Spent]:
    """Ask; if the answer cannot be used, ask once more; then do it without the model."""
    prompt = prompts.ask(messages, max_tokens=work.settings.model_output_tokens, earlier=earlier)
    reply = model.complete(prompt)
    spent = Spent(reply.usage)
    understood = prompts.read(reply.text, messages)
    if understood is None:
        try:
            reply = model.complete(prompts.ask_again(prompt, reply))
        except HoldfastError:
            work.spend(spent)  # this step will be done again; what it cost so far is spent all the same
            raise
        spent += Spent(reply.usage)
        understood = prompts.read(reply.text, messages)
    if understood is None:
        drawn, local = _locally(work, messages)
        note = f"{model.name} gave no usable answer for messages {messages[0].seq} to {messages[-1].seq}, twice"
        return msgspec.structs.replace(drawn, notes=[note, *drawn.notes]), spent + local
    return Drawn(understood, model.name), spent


def _united(work: Work, parts: list[Drawn], conversation: Conversation) -> Drawn:
    """One summary of all parts. Rules, values and open calls are kept whatever the model made of them."""
    whole = summary.combine([part.summary for part in parts])
    with work.tools.computing():
        fixed = summary.verbatim(conversation.whole, breathing(work.activity), conversation.waiting)
    kept = msgspec.structs.replace(
        summary.combine([whole, fixed]), values=fixed.values, answered_calls=fixed.answered_calls
    )
    by = sorted({part.by for part in parts} - {LOCAL}) or [LOCAL]
    return Drawn(kept, by[0], [note for part in parts for note in part.notes])
