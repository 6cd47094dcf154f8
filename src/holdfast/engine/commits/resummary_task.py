"""Regenerate the summaries of the finished archives of a session. The old ones serve until all are replaced at once."""

from functools import partial

import msgspec

from holdfast.computing.summaries import EarlierSummaries, RenderedArchive
from holdfast.engine.commits.commit_task import make_conversation, read_archive, render
from holdfast.engine.commits.summarising import SummaryResult, summarise_archive
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.engine.tasks.completion import OutdatedResultsError
from holdfast.engine.tasks.task_kind import WriteResults
from holdfast.model.access import user_name
from holdfast.model.archives import archive_id
from holdfast.model.tasks import CommitPayload, ResummaryOutcome, SessionPayload
from holdfast.store.database import Tx
from holdfast.store.tables import archives, changes, documents, sessions


class NewSummary(msgspec.Struct, frozen=True):
    number: int
    result: SummaryResult
    rendered: RenderedArchive


def perform(claimed: ClaimedTask) -> WriteResults:
    log_id = claimed.task.decode_payload(SessionPayload).log_id
    numbers = claimed.read(lambda tx: archives.done_numbers(tx, log_id))
    claimed.plan_steps([f"{archive_id(number)} summarise" for number in numbers], 0)
    summaries: list[NewSummary] = []
    earlier = EarlierSummaries()
    for index, number in enumerate(numbers):
        read = claimed.read(partial(read_archive, payload=CommitPayload(log_id, number)))
        conversation = make_conversation(claimed, read, earlier)
        left = len(numbers) - index - 1
        result = summarise_archive(claimed, conversation, prefix=f"{archive_id(number)} ", further_steps=left)
        rendered = render(claimed, read.archive, conversation, result, None)
        summaries.append(NewSummary(number, result, rendered))
        earlier = EarlierSummaries(result.summary, rendered.rolling.earlier, rendered.rolling.text.abstract)
    return partial(_publish, claimed=claimed, log_id=log_id, summaries=summaries)


def _publish(
    tx: Tx, context: CallContext, *, claimed: ClaimedTask, log_id: int, summaries: list[NewSummary]
) -> ResummaryOutcome:
    session = sessions.find_by_log(tx, log_id)
    if session is None:
        raise LeaseLostError
    if archives.done_numbers(tx, log_id) != [each.number for each in summaries]:
        raise OutdatedResultsError  # an archive was finished meanwhile
    for each in summaries:
        archives.write_summary(tx, log_id, each.number, each.result.summary, each.rendered.own)
        archives.write_rolling_summary(tx, log_id, each.number, each.rendered.rolling)
    documents.forget_overviews(tx, log_id, [each.number for each in summaries])
    details = {"task_id": claimed.task.task_id, "archives": len(summaries)}
    changes.record(tx, session, "resummarised", user_name(claimed.task.user_id), context.now, details)
    return ResummaryOutcome(
        session_id=session.session_id,
        archives=len(summaries),
        summarised_by=sorted({each.result.summarised_by for each in summaries}),
        notes=[note for each in summaries for note in each.result.notes],
    )
