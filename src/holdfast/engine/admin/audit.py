"""Reading, exporting and erasing lines of the audit log."""

from holdfast import audit_chain
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.errors import InvalidArgumentError, NotFoundError
from holdfast.model.audit import AuditErased, AuditExport, AuditHead, AuditPage, ExportRecorded
from holdfast.model.identity import Principal
from holdfast.ops.audit import (
    EraseAudit,
    ExportAudit,
    ExportOperatorAudit,
    ListAudit,
    ListOperatorAudit,
    RecordExport,
)
from holdfast.store.access import audit
from holdfast.store.database import EVERY_ACCOUNT, Tx
from holdfast.store.timestamps import storable_micros

MAX_NAMED_SESSIONS = 10
"""How many session ids the line of an export names."""
PERMANENT = {audit_chain.ERASURE, audit_chain.CHECKPOINT}
"""Actions whose lines prove erasures and removals, and therefore cannot be erased."""


def _seal(resources: EngineResources, principal: Principal, op: object, checked: audit.Filter) -> audit.Filter:
    """Seal what was written before, so that the reader sees it in the chain."""
    is_operator = isinstance(op, ListOperatorAudit | ExportOperatorAudit)
    resources.audit_log.seal_now(EVERY_ACCOUNT if is_operator else principal.account_id)
    return checked


def _filter(_context: CallContext, op: ListAudit | ListOperatorAudit) -> audit.Filter:
    return audit.Filter(
        resource=op.resource,
        user_id=op.user_id,
        action=op.action,
        outcome=op.outcome,
        since=None if op.since is None else storable_micros("since", op.since),
        until=None if op.until is None else storable_micros("until", op.until),
        before=op.cursor,
    )


def _list(
    tx: Tx, _principal: Principal, op: ListAudit | ListOperatorAudit, filter: audit.Filter, _context: CallContext
) -> AuditPage:
    records = audit.page(tx, op.limit + 1, filter)
    page = records[: op.limit]
    return AuditPage(page, page[-1].id if len(records) > op.limit else None)


def _export(
    tx: Tx, _principal: Principal, op: ExportAudit | ExportOperatorAudit, _prepared: None, context: CallContext
) -> AuditExport:
    lines = audit.lines_after(tx, op.after, op.limit + 1)
    page = lines[: op.limit]
    head = audit.find_head(tx) or audit.empty_head(tx.account)
    key = context.settings.audit_key
    return AuditExport(
        lines=page,
        head=AuditHead(
            account_id=tx.account,
            number=head.number,
            link=head.link,
            start_number=head.pruned_number,
            start_link=head.pruned_link,
            signature=None if key is None else audit_chain.sign(key, tx.account, head.number, head.link),
        ),
        unsealed=audit.count_unsealed(tx),
        next_cursor=page[-1].number if len(lines) > op.limit else None,
    )


def _erase(tx: Tx, _principal: Principal, op: EraseAudit, _prepared: None, context: CallContext) -> AuditErased:
    found = audit.find_numbers(tx, op.ids)
    for line_id in op.ids:
        if line_id not in found:
            raise NotFoundError("audit line", line_id)
        action = found[line_id][1]
        if action in PERMANENT:
            raise InvalidArgumentError(
                "ids", f"{line_id} is a line of {action}, which proves that others were erased or removed; omit it"
            )
    numbers = sorted({found[line_id][0] for line_id in op.ids})
    audit.erase(tx, numbers, context.now)
    return AuditErased(numbers)


def _record_export(
    _tx: Tx, _principal: Principal, op: RecordExport, _prepared: None, _context: CallContext
) -> ExportRecorded:
    if op.session_ids is None:
        return ExportRecorded("all sessions")
    named, more = op.session_ids[:MAX_NAMED_SESSIONS], len(op.session_ids) - MAX_NAMED_SESSIONS
    return ExportRecorded(" ".join([*named, f"and {more} more"] if more > 0 else named))


HANDLERS: dict[type, OperationHandler] = {
    ListAudit: OperationHandler(_list, check=_filter, prepare=_seal),
    ListOperatorAudit: OperationHandler(_list, check=_filter, prepare=_seal),
    ExportAudit: OperationHandler(_export, prepare=_seal),
    ExportOperatorAudit: OperationHandler(_export, prepare=_seal),
    EraseAudit: OperationHandler(_erase, writes=always, prepare=_seal),
    RecordExport: OperationHandler(_record_export, writes=always),
}
