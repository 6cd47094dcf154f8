"""The second phase of a commit: summarise an archive in the background, then publish all results in one transaction."""

from collections.abc import Sequence

import msgspec

from holdfast import summary
from holdfast.context import tool_outputs
from holdfast.engine.commits.archives import read_messages
from holdfast.engine.commits.summarising import Conversation, SummaryResult, summarise_archive
from holdfast.engine.commits.tool_outputs import OutputLimits, restore_outputs
from holdfast.engine.gate.rule import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.engine.tasks.task_kind import WriteResults
from holdfast.model.archives import archive_id, archive_uri
from holdfast.model.summaries import EmbeddingUsage, Line, Summary
from holdfast.model.tasks import CommitOutcome, CommitPayload, TaskUsage, TotalUsage
from holdfast.store.database import Tx
from holdfast.store.tables import archives, changes, sessions, usages
from holdfast.store.tables.archives import RenderedSummary, StoredArchive
from holdfast.text import tokens

SMALL_ARCHIVE_TOKENS = 500
"""The overview of a larger archive must be smaller than the archive."""
MAX_OVERVIEW_SHARE = 0.39
"""Largest size of an overview without its rules, as a share of the conversation."""
MIN_OVERVIEW_TOKENS = 120

RollingSummary = tuple[Summary | None, RenderedSummary]
"""The summary of all earlier archives, if there are any, and the text of the session's summary up to an archive."""


class EarlierSummaries(msgspec.Struct, frozen=True):
    """Summaries of the finished archives before an archive."""

    previous: Summary | None = None
    """Of the last finished archive before it."""
    before_previous: Summary | None = None
    """Of all archives before the previous one, combined."""
    abstract: str = ""
    """One line about the conversation so far."""


def perform(claimed: ClaimedTask) -> WriteResults:
    payload = claimed.task.decode_payload(CommitPayload)
    conversation, earlier = claimed.read(lambda tx: _read_input(tx, claimed, payload))
    result = summarise_archive(claimed, conversation, earlier.abstract)
    rendered = _render(claimed, conversation, result.summary)
    rolling = _render_rolling(claimed, result.summary, rendered, earlier)
    return lambda tx, context: _publish(tx, context, claimed, payload, earlier, result, rendered, rolling)


def _read_input(tx: Tx, claimed: ClaimedTask, payload: CommitPayload) -> tuple[Conversation, EarlierSummaries]:
    session = sessions.find_by_log(tx, payload.log_id)
    archive = archives.find(tx, payload.log_id, payload.number)
    if session is None or archive is None:
        raise LeaseLostError
    messages = summary.without_system_messages(read_messages(tx, session, archive.first_seq, archive.last_seq))
    with_previews = tool_outputs.mark_previews(
        messages, tool_outputs.find_messages_with_outputs(messages), tokens.counter(claimed.settings.token_counter)
    )
    earlier = _read_earlier_summaries(tx, payload)
    open_calls = summary.open_calls([it for it in (earlier.before_previous, earlier.previous) if it is not None])
    return Conversation(with_previews, restore_outputs(tx, messages, OutputLimits()), open_calls), earlier


def _read_earlier_summaries(tx: Tx, payload: CommitPayload) -> EarlierSummaries:
    previous = archives.latest_done(tx, payload.log_id, before=payload.number)
    if previous is None:
        return EarlierSummaries()
    return EarlierSummaries(*archives.read_summaries(tx, payload.log_id, previous.number), previous.rolling_abstract)


def _render(claimed: ClaimedTask, conversation: Conversation, archive_summary: Summary) -> RenderedSummary:
    """Render the overview of an archive: at most two fifths of the conversation's size, plus the rules."""
    settings = claimed.settings
    size = sum(message.tokens for message in conversation.with_previews)
    count = tokens.counter(settings.token_counter)
    bound = max(MIN_OVERVIEW_TOKENS, min(settings.overview_tokens, round(size * MAX_OVERVIEW_SHARE)))
    is_small = size <= SMALL_ARCHIVE_TOKENS
    # The overview must stay smaller than the archive even with rules.
    # The rolling summary includes the rules that do not fit, once a later archive is the latest.
    rules_bound = settings.rules_tokens if is_small else min(settings.rules_tokens, size * 3 // 5)
    rendered = summary.render(archive_summary, bound, rules_bound)
    while not is_small and count(rendered.overview) >= size and bound > MIN_OVERVIEW_TOKENS:
        bound, rules_bound = bound * 2 // 3, rules_bound * 2 // 3
        rendered = summary.render(archive_summary, bound, rules_bound)
    return RenderedSummary(
        rendered.abstract,
        rendered.overview,
        count(rendered.overview),
        rendered.rules_tokens,
        _source_seqs(rendered.left_out_rules),
    )


def _render_rolling(
    claimed: ClaimedTask, archive_summary: Summary, rendered: RenderedSummary, earlier: EarlierSummaries
) -> RollingSummary:
    """Render the session's summary for the time when this archive is the latest."""
    if earlier.previous is None:
        return None, rendered
    combined = summary.fold(earlier.before_previous, earlier.previous, claimed.settings.earlier_tokens)
    return _render_with_earlier(claimed, archive_summary, rendered, combined)


def _render_with_earlier(
    claimed: ClaimedTask, archive_summary: Summary, rendered: RenderedSummary, earlier: Summary
) -> RollingSummary:
    earlier = summary.update_earlier(earlier, archive_summary)
    latest = summary.SummaryText(rendered.abstract, rendered.overview, rendered.rules_tokens)
    rolling = summary.render_rolling(latest, earlier, claimed.settings.rules_tokens)
    count = tokens.counter(claimed.settings.token_counter)
    return earlier, RenderedSummary(
        rolling.abstract,
        rolling.overview,
        count(rolling.overview),
        rules_left_out=[*_source_seqs(rolling.left_out_rules), *rendered.rules_left_out],
    )


def _source_seqs(lines: Sequence[Line]) -> list[int]:
    return sorted({seq for line in lines for seq in line.sources})


def _publish(
    tx: Tx,
    context: CallContext,
    claimed: ClaimedTask,
    payload: CommitPayload,
    earlier: EarlierSummaries,
    result: SummaryResult,
    rendered: RenderedSummary,
    rolling: RollingSummary,
) -> CommitOutcome:
    log_id, number = payload.log_id, payload.number
    session = sessions.find_by_log(tx, log_id)
    archive = archives.find(tx, log_id, number)
    if session is None or archive is None:
        raise LeaseLostError
    current = _read_earlier_summaries(tx, payload)
    if current != earlier:  # an earlier archive that had failed or was cancelled has been finished meanwhile
        rolling = _render_rolling(claimed, result.summary, rendered, current)
    archives.write_summary(tx, log_id, number, result.summary, rendered)
    archives.write_rolling_summary(tx, log_id, number, *rolling)
    archives.set_state(tx, log_id, number, "done", ended_at=context.now, failure=None)
    _add_to_later_archive(tx, claimed, payload, archive, result.summary)
    task = claimed.task
    details = {"archive_id": archive_id(number), "task_id": task.task_id, "abstract": rendered.abstract}
    changes.record(tx, session, "archived", task.user_id, context.now, details)
    return _outcome(tx, claimed, payload, archive, result)


def _add_to_later_archive(
    tx: Tx, claimed: ClaimedTask, payload: CommitPayload, archive: StoredArchive, archive_summary: Summary
) -> None:
    """Add this archive to the rolling summary of the latest one, if a later archive was finished first."""
    latest = archives.latest_done(tx, payload.log_id)
    if latest is None or latest.number <= payload.number:
        return
    latest_summary, earlier = archives.read_summaries(tx, payload.log_id, latest.number)
    rendered = RenderedSummary(latest.abstract, latest.overview, latest.overview_tokens, latest.rules_tokens)
    earlier = summary.insert_late(
        earlier or Summary(), archive_summary, archive.first_seq, archive.last_seq, claimed.settings.earlier_tokens
    )
    rolling = _render_with_earlier(claimed, latest_summary or Summary(), rendered, earlier)
    archives.write_rolling_summary(tx, payload.log_id, latest.number, *rolling)


def _outcome(
    tx: Tx, claimed: ClaimedTask, payload: CommitPayload, archive: StoredArchive, result: SummaryResult
) -> CommitOutcome:
    task = claimed.task
    previous = archives.find(tx, payload.log_id, payload.number - 1)
    previous_commit_at = 0 if previous is None else previous.created_at
    uri = archive_uri(task.user_id, task.resource_id, payload.number)
    total = archive.total_tokens + archive.embedding_tokens
    return CommitOutcome(
        session_id=task.resource_id,
        archive_uri=uri,
        memories_extracted={},
        active_count_updated=usages.count_used_between(tx, payload.log_id, previous_commit_at, archive.created_at),
        token_usage=TaskUsage(archive.usage, EmbeddingUsage(archive.embedding_tokens), TotalUsage(total)),
        memory_diff_uri=f"{uri}/memory_diff.json",
        summarised_by=result.summarised_by,
        notes=result.notes,
    )
