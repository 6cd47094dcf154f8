"""The kind of the tasks that index new messages and overviews. An account has at most one of them."""

import time
from collections.abc import Callable
from typing import Any

from holdfast import lazy
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.account_queues import AccountQueue
from holdfast.engine.tasks.claimed_task import MIN_PAUSE_SECONDS, ClaimedTask, LeaseLostError
from holdfast.engine.tasks.order import new_task
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.model.identity import OPERATOR
from holdfast.model.tasks import INDEX
from holdfast.store.database import Tx
from holdfast.store.tables import tasks, unindexed

LOGS_AT_ONCE = 20
MAX_SECONDS = 10.0
"""How long one task works. What is due then is left to the next one, so that other tasks get their turn."""
RETRY_MICROS = 600_000_000
"""After a failure, the logs of the account are indexed again in ten minutes."""


def start_indexing(tx: Tx, context: CallContext) -> None:
    """Add the task that indexes the logs of the account which are due, unless there is one."""
    task_id = f"{unindexed.TASK_PREFIX}{tx.account}"
    tasks.insert_or_restart(tx, new_task(tx, context, INDEX, OPERATOR.user_id, task_id, tx.account))
    context.wake_workers()


def _perform(claimed: ClaimedTask) -> WriteResults:
    """Index the logs that are due. The analysis is imported with the first task: many clients need none."""
    indexing = lazy.load("holdfast.engine.recall.indexing")
    deadline = time.monotonic() + MAX_SECONDS
    total = 0

    def write(transaction: Callable[[Tx], Any]) -> Any:
        return claimed.write(lambda tx, context: _write(tx, context, claimed, transaction, total))

    while time.monotonic() < deadline:
        logs = claimed.read(lambda tx: unindexed.list_due(tx, LOGS_AT_ONCE))
        if not logs:
            break
        claimed.observe("index slice begins")
        begun = time.monotonic()
        total += indexing.index_slice(claimed.read, write, logs).documents
        claimed.observe("index slice is written")
        time.sleep(max(MIN_PAUSE_SECONDS, time.monotonic() - begun))
    return lambda _tx, _context: {"documents": total}


def _write(tx: Tx, context: CallContext, claimed: ClaimedTask, transaction: Callable[[Tx], Any], documents: int) -> Any:
    if not tasks.is_held(tx, claimed.claim):
        raise LeaseLostError
    result = transaction(tx)
    done = documents + result.documents
    tasks.advance(
        tx, claimed.claim, stage=INDEX, done=done, total=max(1, done), worked=claimed.working_time(), now=context.now
    )
    return result


def _try_later(tx: Tx, *_: object) -> None:
    unindexed.postpone_all(tx, RETRY_MICROS)


INDEX_KIND = TaskKind(
    perform=_perform,
    failed=_try_later,
    cancelled=_try_later,
    visible_to="operator",
    retention_hours=lambda _settings: 0,
)
INDEX_QUEUE = AccountQueue(unindexed.list_due_accounts, unindexed.micros_until_due, start_indexing)
