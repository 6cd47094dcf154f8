"""Operations on the audit log. Auditors and administrators may read it."""

from typing import Annotated

import msgspec

from holdfast.model.audit import AuditErased, AuditExport, AuditOutcome, AuditPage, ExportRecorded
from holdfast.model.base import Name
from holdfast.model.messages import Timestamp
from holdfast.ops.table import Operation, operation

PageLimit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
LineNumber = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
LineIds = Annotated[list[Name], msgspec.Meta(min_length=1, max_length=100, description="use 1 to 100 ids of lines")]
SessionIds = Annotated[list[Name], msgspec.Meta(max_length=10_000)]


@operation("GET /audit", role="auditor", answer="bounded")
class ListAudit(Operation[AuditPage], frozen=True, kw_only=True):
    """List the audit lines of the account, newest first.

    `resource` finds lines about it: their own `resource` is this name, or begins with it and a space. `since` is
    included, `until` is not.
    """

    limit: PageLimit = 100
    cursor: Name | None = None
    resource: Name | None = None
    user_id: Name | None = None
    action: Name | None = None
    outcome: AuditOutcome | None = None
    since: Timestamp | None = None
    until: Timestamp | None = None


@operation("GET /admin/audit", role="root", scope="all_accounts", answer="bounded")
class ListOperatorAudit(Operation[AuditPage], frozen=True, kw_only=True):
    """List the audit lines of account creation and deletion, newest first. They outlive the accounts."""

    limit: PageLimit = 100
    cursor: Name | None = None
    resource: Name | None = None
    user_id: Name | None = None
    action: Name | None = None
    outcome: AuditOutcome | None = None
    since: Timestamp | None = None
    until: Timestamp | None = None


@operation("GET /audit/export", role="auditor", answer="bounded")
class ExportAudit(Operation[AuditExport], frozen=True, kw_only=True):
    """Read the audit lines of the account in the order of their chain, with everything that proves them."""

    limit: PageLimit = 1000
    after: LineNumber | None = None


@operation("GET /admin/audit/export", role="root", scope="all_accounts", answer="bounded")
class ExportOperatorAudit(Operation[AuditExport], frozen=True, kw_only=True):
    """Read the audit lines of account creation and deletion in the order of their chain."""

    limit: PageLimit = 1000
    after: LineNumber | None = None


@operation("POST /audit/erasures", role="admin", audit="numbers={result.numbers}")
class EraseAudit(Operation[AuditErased], frozen=True, kw_only=True):
    """Erase the content of audit lines, such as a name that must be forgotten. The chain can still be verified."""

    ids: LineIds


@operation("POST /audit/exports", audit="{result.resource}")
class RecordExport(Operation[ExportRecorded], frozen=True, kw_only=True):
    """Record in the audit log that the caller exports sessions. Without `session_ids`, all of them."""

    session_ids: SessionIds | None = None
