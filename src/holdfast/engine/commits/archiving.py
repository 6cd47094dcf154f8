"""The second phase of a commit: summarise an archive, then show all of it at once."""

from collections.abc import Sequence

import msgspec

from holdfast import summary
from holdfast.context import tool_outputs
from holdfast.engine.commits import order
from holdfast.engine.commits.archives import messages_of
from holdfast.engine.commits.summarising import Conversation, SummaryResult, summarise_archive
from holdfast.engine.commits.tool_outputs import Limits, with_outputs
from holdfast.engine.gate.rule import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.model.archives import archive_id, archive_uri
from holdfast.model.summaries import EmbeddingUsage, Line, Summary
from holdfast.model.tasks import CommitOutcome, CommitUsage, TotalUsage
from holdfast.store.database import Tx
from holdfast.store.tables import archives, changes, sessions, steps, tasks, usages
from holdfast.store.tables.archives import Rolling, StoredArchive, Texts
from holdfast.store.tables.tasks import StoredTask
from holdfast.text import tokens

SMALL = 500
"""The tokens from which on an overview has to be smaller than its archive."""
OVERVIEW_SHARE = 0.39
MIN_BOUND = 120


class Before(msgspec.Struct, frozen=True):
    """What is known of the archives before this one: the last one's own summary, and that of those before it."""

    own: Summary | None = None
    earlier: Summary | None = None
    abstract: str = ""


class Material(msgspec.Struct, frozen=True):
    """What a summary is made of."""

    archive: StoredArchive
    conversation: Conversation
    before: Before


def perform(claimed: ClaimedTask) -> None:
    material = claimed.read(lambda tx: _gather(tx, claimed))
    summarised = summarise_archive(claimed, material.conversation, material.before.abstract)
    texts = _texts(claimed, material, summarised.summary)
    rolling = _rolling(claimed, texts, material.before)
    claimed.finish(lambda tx, context: _apply(tx, context, claimed, material.before, summarised, texts, rolling))


def _gather(tx: Tx, claimed: ClaimedTask) -> Material:
    task = claimed.task
    session = sessions.find_by_log(tx, task.log_id)
    archive = archives.find(tx, task.log_id, task.number)
    if session is None or archive is None:
        raise LeaseLostError
    messages = summary.conversation(messages_of(tx, session, archive.first_seq, archive.last_seq))
    shown = tool_outputs.mark_previews(
        messages, tool_outputs.find(messages), tokens.counter(claimed.settings.token_counter)
    )
    before = _known_before(tx, task)
    waiting = summary.open_calls([it for it in (before.earlier, before.own) if it is not None])
    return Material(archive, Conversation(shown, with_outputs(tx, messages, Limits()), waiting), before)


def _known_before(tx: Tx, task: StoredTask) -> Before:
    before = archives.latest_done(tx, task.log_id, before=task.number)
    if before is None:
        return Before()
    return Before(*archives.summaries(tx, task.log_id, before.number), before.rolling_abstract)


def _texts(claimed: ClaimedTask, material: Material, summarised: Summary) -> Texts:
    """The overview of an archive: two fifths of the conversation at most, and its rules."""
    settings = claimed.settings
    size = sum(message.tokens for message in material.conversation.shown)
    count = tokens.counter(settings.token_counter)
    bound = max(MIN_BOUND, min(settings.overview_tokens, round(size * OVERVIEW_SHARE)))
    # With rules the overview is still smaller than the archive; the rest of them is shown once this is not the latest.
    rules_bound = settings.rules_tokens if size <= SMALL else min(settings.rules_tokens, size * 3 // 5)
    made = summary.render(summarised, bound, rules_bound)
    while size > SMALL and count(made.overview) >= size and bound > MIN_BOUND:
        bound, rules_bound = bound * 2 // 3, rules_bound * 2 // 3
        made = summary.render(summarised, bound, rules_bound)
    return Texts(
        made.abstract, made.overview, count(made.overview), summarised, made.rules_tokens, _seqs(made.left_out)
    )


def _rolling(claimed: ClaimedTask, texts: Texts, before: Before) -> Rolling:
    """The session in short once this archive is its latest."""
    if before.own is None:
        return Rolling(texts.abstract, texts.overview, texts.tokens, None, texts.rules_left_out)
    return _rolled(claimed, texts, summary.fold(before.earlier, before.own, claimed.settings.earlier_tokens))


def _rolled(claimed: ClaimedTask, texts: Texts, earlier: Summary) -> Rolling:
    known = summary.as_of(earlier, texts.summary)
    latest = summary.Rendered(texts.abstract, texts.overview, texts.rules_tokens)
    made = summary.render_rolling(latest, known, claimed.settings.rules_tokens)
    size = tokens.counter(claimed.settings.token_counter)(made.overview)
    return Rolling(made.abstract, made.overview, size, known, [*_seqs(made.left_out), *texts.rules_left_out])


def _seqs(lines: Sequence[Line]) -> list[int]:
    return sorted({seq for line in lines for seq in line.sources})


def _apply(
    tx: Tx,
    context: CallContext,
    claimed: ClaimedTask,
    before: Before,
    summarised: SummaryResult,
    texts: Texts,
    rolling: Rolling,
) -> None:
    task = claimed.task
    session = sessions.find_by_log(tx, task.log_id, lock=True)
    archive = archives.find(tx, task.log_id, task.number)
    if session is None or archive is None:
        raise LeaseLostError
    result = msgspec.json.encode(_outcome(tx, claimed, archive, summarised)).decode()
    if not tasks.complete(tx, claimed.claim, result, worked=claimed.worked(context), now=context.now):
        raise LeaseLostError
    steps.delete(tx, task.task_id)
    known = _known_before(tx, task)
    if known != before:  # an archive that had failed or was cancelled has been done meanwhile
        rolling = _rolling(claimed, texts, known)
    archives.write(tx, task.log_id, task.number, texts)
    archives.write_rolling(tx, task.log_id, task.number, rolling)
    archives.mark(tx, task.log_id, task.number, "done", ended_at=context.now, failure=None)
    _tell_later_ones(tx, claimed, texts.summary, archive)
    told = {"archive_id": archive_id(task.number), "task_id": task.task_id, "abstract": texts.abstract}
    changes.record(tx, session, "archived", task.user_id, context.now, told)
    order.release_next(tx, task.log_id, context)


def _tell_later_ones(tx: Tx, claimed: ClaimedTask, summarised: Summary, archive: StoredArchive) -> None:
    """If a later archive was done first, the session's overview is its; let that know of this one."""
    latest = archives.latest_done(tx, claimed.task.log_id)
    if latest is None or latest.number <= claimed.task.number:
        return
    own, earlier = archives.summaries(tx, claimed.task.log_id, latest.number)
    texts = Texts(latest.abstract, latest.overview, latest.overview_tokens, own or Summary(), latest.rules_tokens)
    known = summary.with_late(
        earlier or Summary(), summarised, archive.first_seq, archive.last_seq, claimed.settings.earlier_tokens
    )
    archives.write_rolling(tx, claimed.task.log_id, latest.number, _rolled(claimed, texts, known))


def _outcome(tx: Tx, claimed: ClaimedTask, archive: StoredArchive, summarised: SummaryResult) -> CommitOutcome:
    task = claimed.task
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
        summarised_by=summarised.by,
        notes=summarised.notes,
    )
