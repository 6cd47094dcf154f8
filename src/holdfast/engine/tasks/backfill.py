"""The kind of the tasks that change old rows after a migration, in slices, while the database is in use."""

import msgspec

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, Slice
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.errors import UnavailableError
from holdfast.store.backfills import BACKFILLS
from holdfast.store.database import Tx
from holdfast.validation import prebuild_decoder

SLICE_ROWS = 200
"""How many rows one transaction changes. Small, so that other writers do not wait long."""


@prebuild_decoder
class BackfillPayload(msgspec.Struct, frozen=True):
    after: str | None = None
    """The position after the last row that was changed."""
    rows: int = 0
    """The number of rows that were changed."""


def _perform(claimed: ClaimedTask) -> WriteResults:
    name = claimed.task.resource_id
    backfill = BACKFILLS.get(name)
    if backfill is None:
        raise UnavailableError(
            f"this version has no backfill {name}; a later one will run it: upgrade holdfast",
            service="backfill",
            reason="unknown name",
        )

    def run(tx: Tx, _context: CallContext, payload: BackfillPayload) -> Slice[BackfillPayload]:
        changed = backfill(tx, payload.after, SLICE_ROWS)
        rows = payload.rows + changed.rows
        return Slice(BackfillPayload(changed.after, rows), rows, is_last=changed.after is None)

    last = claimed.run_slices(run, claimed.task.decode_payload(BackfillPayload))
    return lambda _tx, _context: {"rows": last.rows}


BACKFILL_KIND = TaskKind(perform=_perform, visible_to="operator", retention_hours=lambda _settings: None)
