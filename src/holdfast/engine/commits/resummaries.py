"""Starting tasks that regenerate the summaries of a session, and the kind of these tasks."""

from holdfast import lazy
from holdfast.engine.commits.commit_kind import lock_session
from holdfast.engine.gate import session_access
from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.order import Order, add_task
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.model.archives import ResummaryStarted, archive_number
from holdfast.model.identity import Principal
from holdfast.model.summaries import Cost
from holdfast.model.tasks import RESUMMARY, SessionPayload
from holdfast.ops.commits import ResummariseSession
from holdfast.store.database import Tx
from holdfast.store.tables import archives, tasks
from holdfast.store.tables.tasks import StoredTask, order_key_of_log


def _start(
    tx: Tx, principal: Principal, op: ResummariseSession, _prepared: None, context: CallContext
) -> ResummaryStarted:
    session = session_access.require_session(tx, principal, op, lock=True)
    numbers = archives.done_numbers(tx, session.log_id)
    if not numbers:
        return ResummaryStarted(session_id=session.session_id, status="skipped", task_id=None, archives=0)
    order = Order(order_key_of_log(session.log_id), archives.last_number(tx, session.log_id))
    task_id = tasks.find_pending(tx, order.key, RESUMMARY)  # it will use the current summariser, too
    if task_id is None:
        task_id = add_task(
            tx,
            context,
            RESUMMARY,
            user_id=session.owner_id,
            resource_id=session.session_id,
            subject=session.uri,
            payload=SessionPayload(session.log_id),
            order=order,
            steps_total=len(numbers),
        )
    return ResummaryStarted(session_id=session.session_id, status="accepted", task_id=task_id, archives=len(numbers))


def _perform(claimed: ClaimedTask) -> WriteResults:
    write_results: WriteResults = lazy.load("holdfast.engine.commits.resummary_task").perform(claimed)
    return write_results


def _spent(tx: Tx, task: StoredTask, step: str, cost: Cost) -> None:
    """Add the cost of a step to the archive that its name begins with."""
    number = archive_number(step.partition(" ")[0])
    if number is not None:
        archives.add_cost(tx, task.decode_payload(SessionPayload).log_id, number, cost)


RESUMMARY_KIND = TaskKind(perform=_perform, lock=lock_session, spent=_spent)

HANDLERS: dict[type, OperationHandler] = {ResummariseSession: OperationHandler(_start, writes=always)}
