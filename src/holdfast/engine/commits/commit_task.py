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
from holdfast.engine.commits.archives import read_messages
from holdfast.engine.commits.summarising import Conversation, SummaryResult, summarise_archive
from holdfast.engine.commits.tool_outputs import OutputLimits, restore_outputs
from holdfast.engine.commits.uses import count_addresses
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.engine.tasks.completion import OutdatedResultsError
from holdfast.engine.tasks.task_kind import WriteResults
from holdfast.model.access import user_name
from holdfast.model.archives import archive_id, archive_uri
from holdfast.model.messages import Message
from holdfast.model.summaries import EmbeddingUsage, RenderedSummary
from holdfast.model.tasks import CommitOutcome, CommitPayload, TaskUsage, TotalUsage
from holdfast.store.checked.archive_rows import StoredArchive
from holdfast.store.database import Tx
from holdfast.store.tables import archives, changes, documents, sessions
from holdfast.store.tables.sessions import StoredSession
from holdfast.text import tokens


class Neighbours(msgspec.Struct, frozen=True):
    """The finished archives around an archive, which its texts depend on."""

    earlier: EarlierSummaries
    later: LaterArchive | None


class ArchiveInput(msgspec.Struct, frozen=True):
    archive: StoredArchive
    messages: list[Message]
    """Without system messages; large tool outputs are cut to previews."""
    with_outputs: list[Message]


def perform(claimed: ClaimedTask) -> WriteResults:
    payload = claimed.task.decode_payload(CommitPayload)
    read, neighbours = claimed.read(lambda tx: (read_archive(tx, payload), read_neighbours(tx, payload)))
    conversation = make_conversation(claimed, read, neighbours.earlier)
    result = summarise_archive(claimed, conversation)
    rendered = render(claimed, read.archive, conversation, result, neighbours.later)
    return partial(_publish, claimed=claimed, payload=payload, result=result, rendered=rendered, neighbours=neighbours)


def make_conversation(claimed: ClaimedTask, read: ArchiveInput, earlier: EarlierSummaries) -> Conversation:
    with_previews = tool_outputs.mark_previews(
        read.messages,
        tool_outputs.find_messages_with_outputs(read.messages),
        tokens.counter(claimed.settings.token_counter),
    )
    return Conversation(with_previews, read.with_outputs, earlier)


def render(
    claimed: ClaimedTask,
    archive: StoredArchive,
    conversation: Conversation,
    result: SummaryResult,
    later: LaterArchive | None,
) -> RenderedArchive:
    """Make the texts of a summarised archive, and of the session up to it."""
    size = sum(message.tokens for message in conversation.with_previews)
    limits = text_limits(claimed.settings)
    to_render = SummaryToRender(
        result.summary, archive.first_seq, archive.last_seq, size, conversation.earlier, later, limits
    )
    return claimed.compute(RENDER, to_render)


def text_limits(settings: Settings) -> TextLimits:
    return TextLimits(settings.overview_tokens, settings.rules_tokens, settings.earlier_tokens, settings.token_counter)


def read_archive(tx: Tx, payload: CommitPayload) -> ArchiveInput:
    session = sessions.find_by_log(tx, payload.log_id)
    archive = archives.find(tx, payload.log_id, payload.number)
    if session is None or archive is None:
        raise LeaseLostError
    stored = read_messages(tx, session, archive.first_seq, archive.last_seq)
    messages = summary.without_system_messages([message for message in stored if not message.damaged])
    return ArchiveInput(archive, messages, restore_outputs(tx, messages, OutputLimits()))


def read_neighbours(tx: Tx, payload: CommitPayload) -> Neighbours:
    return Neighbours(_read_earlier_summaries(tx, payload), _read_later_archive(tx, payload))


def _read_earlier_summaries(tx: Tx, payload: CommitPayload) -> EarlierSummaries:
    previous = archives.latest_done(tx, payload.log_id, before=payload.number)
    if previous is None:
        return EarlierSummaries()
    return EarlierSummaries(*archives.read_summaries(tx, payload.log_id, previous.number), previous.rolling_abstract)


def _read_later_archive(tx: Tx, payload: CommitPayload) -> LaterArchive | None:
    latest = archives.latest_done(tx, payload.log_id)
    if latest is None or latest.number <= payload.number:
        return None
    rendered = RenderedSummary(latest.abstract, latest.overview, latest.overview_tokens, latest.rules_tokens)
    return LaterArchive(latest.number, *archives.read_summaries(tx, payload.log_id, latest.number), rendered)


def _publish(
    tx: Tx,
    context: CallContext,
    *,
    claimed: ClaimedTask,
    payload: CommitPayload,
    result: SummaryResult,
    rendered: RenderedArchive,
    neighbours: Neighbours,
) -> CommitOutcome:
    """Make the results visible. This computes nothing, because it runs in a transaction."""
    task, log_id, number = claimed.task, payload.log_id, payload.number
    session = sessions.find_by_log(tx, log_id)
    archive = archives.find(tx, log_id, number)
    if session is None or archive is None:
        raise LeaseLostError
    if read_neighbours(tx, payload) != neighbours:  # their texts are part of the texts of this archive
        raise OutdatedResultsError
    archives.write_summary(tx, log_id, number, result.summary, rendered.own)
    archives.write_rolling_summary(tx, log_id, number, rendered.rolling)
    if neighbours.later is not None and rendered.later_rolling is not None:
        archives.write_rolling_summary(tx, log_id, neighbours.later.number, rendered.later_rolling)
    archives.set_state(tx, log_id, number, "done", ended_at=context.now, failure=None)
    documents.forget_overviews(tx, log_id, [number])
    details = {"archive_id": archive_id(number), "task_id": task.task_id, "abstract": rendered.own.abstract}
    changes.record(tx, session, "archived", user_name(task.user_id), context.now, details)
    return _outcome(tx, claimed, payload, session, archive, result)


def _outcome(
    tx: Tx,
    claimed: ClaimedTask,
    payload: CommitPayload,
    session: StoredSession,
    archive: StoredArchive,
    result: SummaryResult,
) -> CommitOutcome:
    task = claimed.task
    uri = archive_uri(task.user_id, task.resource_id, payload.number)
    total = archive.total_tokens + archive.embedding_tokens
    return CommitOutcome(
        session_id=task.resource_id,
        archive_uri=uri,
        memories_extracted={},
        active_count_updated=count_addresses(tx, session, payload.number, archive.created_at),
        token_usage=TaskUsage(archive.usage, EmbeddingUsage(archive.embedding_tokens), TotalUsage(total)),
        memory_diff_uri=f"{uri}/memory_diff.json",
        summarised_by=result.summarised_by,
        notes=result.notes,
    )
