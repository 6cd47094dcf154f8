"""The second phase of a commit: summarise an archive in the background, then publish all results in one transaction."""

from functools import partial

import msgspec

from holdfast import summary
from holdfast.computing.summaries import (
    RENDER,
    EarlierSummaries,
    LaterArchive,
    RenderedArchive,
    SummaryToRender,
    TextLimits,
)
from holdfast.config import Settings
from holdfast.context import tool_outputs
from holdfast.engine.commits import order
from holdfast.engine.commits.archives import read_messages
from holdfast.engine.commits.summarising import Conversation, SummaryResult, summarise_archive
from holdfast.engine.commits.tool_outputs import OutputLimits, restore_outputs
from holdfast.engine.gate.rule import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.errors import UnavailableError
from holdfast.model.archives import archive_id, archive_uri
from holdfast.model.messages import Message
from holdfast.model.summaries import EmbeddingUsage, RenderedSummary
from holdfast.model.tasks import CommitOutcome, CommitUsage, TotalUsage
from holdfast.store.database import Tx
from holdfast.store.tables import archives, changes, sessions, steps, tasks, usages
from holdfast.store.tables.archives import StoredArchive
from holdfast.store.tables.tasks import StoredTask
from holdfast.text import tokens

MAX_RENDERINGS = 5
"""How often the texts are rendered again because other archives of the session were finished meanwhile."""


class NeighboursChangedError(Exception):
    """Another archive of the session was finished while the texts of this one were rendered."""


class Neighbours(msgspec.Struct, frozen=True):
    """The finished archives around an archive, which its texts depend on."""

    earlier: EarlierSummaries
    later: LaterArchive | None


class ArchiveInput(msgspec.Struct, frozen=True):
    archive: StoredArchive
    messages: list[Message]
    """Without system messages; large tool outputs are cut to previews."""
    with_outputs: list[Message]
    neighbours: Neighbours


def perform(claimed: ClaimedTask) -> None:
    read = claimed.read(lambda tx: _read_input(tx, claimed.task))
    with_previews = tool_outputs.mark_previews(
        read.messages,
        tool_outputs.find_messages_with_outputs(read.messages),
        tokens.counter(claimed.settings.token_counter),
    )
    earlier = read.neighbours.earlier
    result = summarise_archive(claimed, Conversation(with_previews, read.with_outputs, earlier))
    size = sum(message.tokens for message in with_previews)
    _finish(claimed, read.archive, result, size, read.neighbours)


def _finish(
    claimed: ClaimedTask, archive: StoredArchive, result: SummaryResult, size: int, neighbours: Neighbours
) -> None:
    """Render the texts, then publish all results in one transaction, which computes nothing.

    The texts depend on the archives around this one. If these change meanwhile, the texts are rendered again.
    """
    for _ in range(MAX_RENDERINGS):
        rendered = claimed.compute(
            RENDER,
            SummaryToRender(
                result.summary,
                archive.first_seq,
                archive.last_seq,
                size,
                neighbours.earlier,
                neighbours.later,
                text_limits(claimed.settings),
            ),
        )
        try:
            claimed.finish(partial(_publish, claimed=claimed, result=result, rendered=rendered, neighbours=neighbours))
        except NeighboursChangedError:
            neighbours = claimed.read(lambda tx: read_neighbours(tx, claimed.task))
        else:
            return
    raise UnavailableError(
        f"other archives of the session were finished {MAX_RENDERINGS} times while this one was rendered",
        service="commits",
        reason="neighbours changed",
    )


def text_limits(settings: Settings) -> TextLimits:
    return TextLimits(settings.overview_tokens, settings.rules_tokens, settings.earlier_tokens, settings.token_counter)


def _read_input(tx: Tx, task: StoredTask) -> ArchiveInput:
    session = sessions.find_by_log(tx, task.log_id)
    archive = archives.find(tx, task.log_id, task.number)
    if session is None or archive is None:
        raise LeaseLostError
    messages = summary.without_system_messages(read_messages(tx, session, archive.first_seq, archive.last_seq))
    with_outputs = restore_outputs(tx, messages, OutputLimits())
    return ArchiveInput(archive, messages, with_outputs, read_neighbours(tx, task))


def read_neighbours(tx: Tx, task: StoredTask) -> Neighbours:
    return Neighbours(_read_earlier_summaries(tx, task), _read_later_archive(tx, task))


def _read_earlier_summaries(tx: Tx, task: StoredTask) -> EarlierSummaries:
    previous = archives.latest_done(tx, task.log_id, before=task.number)
    if previous is None:
        return EarlierSummaries()
    return EarlierSummaries(*archives.read_summaries(tx, task.log_id, previous.number), previous.rolling_abstract)


def _read_later_archive(tx: Tx, task: StoredTask) -> LaterArchive | None:
    latest = archives.latest_done(tx, task.log_id)
    if latest is None or latest.number <= task.number:
        return None
    rendered = RenderedSummary(latest.abstract, latest.overview, latest.overview_tokens, latest.rules_tokens)
    return LaterArchive(latest.number, *archives.read_summaries(tx, task.log_id, latest.number), rendered)


def _publish(
    tx: Tx,
    context: CallContext,
    *,
    claimed: ClaimedTask,
    result: SummaryResult,
    rendered: RenderedArchive,
    neighbours: Neighbours,
) -> None:
    task = claimed.task
    session = sessions.find_by_log(tx, task.log_id, lock=True)
    archive = archives.find(tx, task.log_id, task.number)
    if session is None or archive is None:
        raise LeaseLostError
    if read_neighbours(tx, task) != neighbours:
        raise NeighboursChangedError
    outcome = msgspec.json.encode(_outcome(tx, claimed, archive, result)).decode()
    if not tasks.complete(tx, claimed.claim, outcome, worked=claimed.working_time(context), now=context.now):
        raise LeaseLostError
    steps.delete(tx, task.task_id)
    archives.write_summary(tx, task.log_id, task.number, result.summary, rendered.own)
    archives.write_rolling_summary(tx, task.log_id, task.number, rendered.rolling)
    if neighbours.later is not None and rendered.later_rolling is not None:
        archives.write_rolling_summary(tx, task.log_id, neighbours.later.number, rendered.later_rolling)
    archives.set_state(tx, task.log_id, task.number, "done", ended_at=context.now, failure=None)
    details = {"archive_id": archive_id(task.number), "task_id": task.task_id, "abstract": rendered.own.abstract}
    changes.record(tx, session, "archived", task.user_id, context.now, details)
    order.unblock_next(tx, task.log_id, context)


def _outcome(tx: Tx, claimed: ClaimedTask, archive: StoredArchive, result: SummaryResult) -> CommitOutcome:
    task = claimed.task
    previous = archives.find(tx, task.log_id, task.number - 1)
    previous_commit_at = 0 if previous is None else previous.created_at
    uri = archive_uri(task.user_id, task.resource_id, task.number)
    total = archive.total_tokens + archive.embedding_tokens
    return CommitOutcome(
        session_id=task.resource_id,
        archive_uri=uri,
        memories_extracted={},
        active_count_updated=usages.count_used_between(tx, task.log_id, previous_commit_at, archive.created_at),
        token_usage=CommitUsage(archive.usage, EmbeddingUsage(archive.embedding_tokens), TotalUsage(total)),
        memory_diff_uri=f"{uri}/memory_diff.json",
        summarised_by=result.summarised_by,
        notes=result.notes,
    )
