"""The second phase of a commit: summarise an archive, then show all of it at once."""

from functools import partial

import msgspec

from holdfast.context import asking, summary, tokens
from holdfast.engine import order
from holdfast.engine.archives import messages_of
from holdfast.engine.rule import Moment
from holdfast.engine.tools import breathing
from holdfast.engine.work import LostError, Work
from holdfast.model import (
    CommitOutcome,
    CommitUsage,
    EmbeddingUsage,
    Message,
    Summary,
    TokenUsage,
    TotalUsage,
    archive_id,
    archive_uri,
)
from holdfast.providers.base import ChatModel
from holdfast.store import archives, changes, sessions, tasks, usages
from holdfast.store.archives import StoredArchive, Texts
from holdfast.store.database import Tx
from holdfast.store.tasks import StoredTask

LOCAL = "local"
LEAST_CORRECTION = 0.5
LEAST_BOUND = 100
SMALL = 500
"""The tokens from which on an overview has to be smaller than its archive."""


class Material(msgspec.Struct, frozen=True):
    """What a summary is made of."""

    archive: StoredArchive
    messages: list[Message]
    before: tuple[Summary | None, Summary | None]
    """The own summary of the archive before it, and what that one knew of those before."""


class Drawn(msgspec.Struct, frozen=True):
    """A summary, who wrote it, and what went wrong on the way."""

    summary: Summary
    by: str
    notes: list[str] = []


def perform(work: Work) -> None:
    material = work.read(lambda tx: _gather(tx, work))
    drawn = _summarise(work, material)
    texts = _texts(work, material, drawn.summary)
    work.finish(lambda tx, moment: _apply(tx, moment, work, material, drawn, texts))


def _gather(tx: Tx, work: Work) -> Material:
    task = work.task
    session = sessions.find_by_log(tx, task.log_id)
    archive = archives.find(tx, task.log_id, task.number)
    if session is None or archive is None:
        raise LostError
    said = messages_of(tx, session, archive.first_seq, archive.last_seq)
    return Material(archive, said, _known_before(tx, task))


def _known_before(tx: Tx, task: StoredTask) -> tuple[Summary | None, Summary | None]:
    before = archives.latest_done(tx, task.log_id, before=task.number)
    return (None, None) if before is None else archives.summaries(tx, task.log_id, before.number)


def _summarise(work: Work, material: Material) -> Drawn:
    model = work.tools.model
    if model is None:
        return work.once("summarise", Drawn, lambda: (_locally(work, material.messages), TokenUsage()))
    # What the model counts as a token may be more or less than we estimate; its own figures tell.
    most = asking.room(round(work.settings.model_input_tokens / max(model.correction, LEAST_CORRECTION)))
    ends = work.once("plan", list[int], lambda: (_plan(material.messages, most), TokenUsage()))
    work.expect(len(ends) + 2)
    parts = []
    first = material.archive.first_seq
    for number, last in enumerate(ends, 1):
        piece = [message for message in material.messages if first <= message.seq <= last]
        said = [message for run in asking.chunks(piece, most) for message in run]  # those too long for one call, cut
        parts.append(work.once(f"summarise {number}", Drawn, partial(_ask, work, model, said)))
        first = last + 1
    return _united(work, parts, material.messages)


def _plan(messages: list[Message], most: int) -> list[int]:
    """The last message of each piece that the model reads at once."""
    return [piece[-1].seq for piece in asking.chunks(messages, most)]


def _locally(work: Work, messages: list[Message]) -> Drawn:
    breathe = breathing(work.activity)
    with work.tools.computing:
        return Drawn(summary.summarise(messages, partial(work.tools.embed, breathe=breathe), breathe), LOCAL)


def _ask(work: Work, model: ChatModel, messages: list[Message]) -> tuple[Drawn, TokenUsage]:
    """Ask; if the answer cannot be used, ask once more; then do it without the model."""
    prompt = asking.ask(messages, max_tokens=work.settings.model_output_tokens, earlier=None)
    reply = model.complete(prompt)
    usage = reply.usage
    understood = asking.read(reply.text, messages)
    if understood is None:
        work.observe("the answer could not be read")
        reply = model.complete(asking.ask_again(prompt, reply.text))
        usage += reply.usage
        understood = asking.read(reply.text, messages)
    if understood is None:
        note = f"{model.name} gave no usable answer for messages {messages[0].seq} to {messages[-1].seq}, twice"
        return Drawn(_locally(work, messages).summary, LOCAL, [note]), usage
    return Drawn(understood, model.name), usage


def _united(work: Work, parts: list[Drawn], messages: list[Message]) -> Drawn:
    """One summary of all parts. What must always or never be done is kept whatever the model made of it."""
    whole = summary.combine([part.summary for part in parts])
    with work.tools.computing:
        rules = summary.rules(messages, breathing(work.activity))
    kept = summary.combine([whole, Summary(language=whole.language, constraints=rules)])
    by = sorted({part.by for part in parts} - {LOCAL}) or [LOCAL]
    return Drawn(kept, by[0], [note for part in parts for note in part.notes])


def _texts(work: Work, material: Material, drawn: Summary) -> Texts:
    settings, size = work.settings, material.archive.tokens
    count = tokens.counter(settings.token_counter)
    bound = settings.overview_tokens if size <= SMALL else min(settings.overview_tokens, size * 3 // 4)
    abstract, overview = summary.render(drawn, bound)
    while size > SMALL and count(overview) >= size and bound > LEAST_BOUND:
        bound = bound * 2 // 3  # it is rendered by estimate; an exact counter may find more
        abstract, overview = summary.render(drawn, bound)
    own_before, earlier_before = material.before
    earlier = None if own_before is None else summary.fold(earlier_before, own_before, settings.earlier_tokens)
    rolling = summary.render_rolling(overview, earlier)
    return Texts(abstract, overview, count(overview), rolling, count(rolling), drawn, earlier)


def _apply(tx: Tx, moment: Moment, work: Work, material: Material, drawn: Drawn, texts: Texts) -> None:
    task = work.task
    session = sessions.find_by_log(tx, task.log_id, lock=True)
    archive = archives.find(tx, task.log_id, task.number)
    if session is None or archive is None:
        raise LostError
    result = msgspec.json.encode(_outcome(tx, work, archive, drawn)).decode()
    if not tasks.finish(
        tx, work.claim, "completed", result=result, error=None, worked=work.worked(moment), now=moment.now
    ):
        raise LostError
    known = _known_before(tx, task)
    if known != material.before:  # an archive that had failed or was cancelled has been done meanwhile
        texts = _texts(work, msgspec.structs.replace(material, before=known), drawn.summary)
    archives.write(tx, task.log_id, task.number, texts)
    archives.mark(tx, task.log_id, task.number, "done", ended_at=moment.now, failure=None)
    _tell_later_ones(tx, work, texts.summary)
    told = {"archive_id": archive_id(task.number), "task_id": task.task_id, "abstract": texts.abstract}
    changes.record(tx, session, "archived", task.user_id, moment.now, told)
    order.release_next(tx, task.log_id, moment)


def _tell_later_ones(tx: Tx, work: Work, drawn: Summary) -> None:
    """If a later archive was done first, the session's overview is its; let that know of this one."""
    latest = archives.latest_done(tx, work.task.log_id)
    if latest is None or latest.number <= work.task.number:
        return
    own, earlier = archives.summaries(tx, work.task.log_id, latest.number)
    known = summary.fold(earlier, drawn, work.settings.earlier_tokens)
    rolling = summary.render_rolling(latest.overview, known)
    texts = Texts(
        latest.abstract,
        latest.overview,
        latest.overview_tokens,
        rolling,
        tokens.counter(work.settings.token_counter)(rolling),
        own or Summary(),
        known,
    )
    archives.write(tx, work.task.log_id, latest.number, texts)


def _outcome(tx: Tx, work: Work, archive: StoredArchive, drawn: Drawn) -> CommitOutcome:
    task = work.task
    before = archives.find(tx, task.log_id, task.number - 1)
    since = 0 if before is None else before.created_at
    uri = archive_uri(task.user_id, task.resource_id, task.number)
    total = archive.total_tokens + archive.embedding_tokens
    return CommitOutcome(
        session_id=task.resource_id,
        archive_uri=uri,
        memories_extracted={},
        active_count_updated=usages.used_between(tx, task.log_id, since, archive.created_at),
        token_usage=CommitUsage(archive.usage, EmbeddingUsage(archive.embedding_tokens), TotalUsage(total)),
        memory_diff_uri=f"{uri}/memory_diff.json",
        summarised_by=drawn.by,
        notes=drawn.notes,
    )
