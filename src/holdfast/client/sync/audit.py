"""Client methods for the audit log: listing, exporting and verifying it."""

from collections.abc import Callable
from pathlib import Path
from typing import Unpack

from holdfast.audit_chain import Verifier
from holdfast.client.audit_files import AuditFileWriter, read_saved_heads
from holdfast.client.sync.transport import Transport
from holdfast.model.audit import AuditExport, AuditHead, AuditPage, AuditQuery, AuditVerification, ExportRecorded
from holdfast.ops.audit import ExportAudit, ExportOperatorAudit, ListAudit, RecordExport

Progress = Callable[[int, int, str], None]
"""Called with the number of lines that were read, of all lines, and the account."""


class Audit:
    """Reading the audit log of the caller's account. The role `auditor` may do this, too."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_audit(self, **wanted: Unpack[AuditQuery]) -> AuditPage:
        """List the audit lines of the caller's account, newest first.

        Select them by `resource`, `user_id`, `action`, `outcome`, `since` and `until`. A page has up to `limit` lines;
        to get the next one, pass the page's `next_cursor` as `cursor`. `resource` also finds lines that name more, such
        as `chat_001 rights=read`. `since` is included, `until` is not.
        """
        return self._transport.call(ListAudit(**wanted))

    def export_audit(self, file: str | Path, *, operator: bool = False, progress: Progress | None = None) -> AuditHead:
        """Write the audit chain of the account to a file of JSON lines, which `holdfast audit verify` can check.

        The file appears once it is complete. With `operator`, it has the lines of account creation and deletion.
        """
        page = self.read_audit_chain(operator=operator)
        with AuditFileWriter(Path(file)) as writer:
            writer.begin(page.head)
            while True:
                writer.add(page)
                if progress is not None:
                    progress(writer.last_number, max(page.head.number, 1), page.head.account_id)
                if page.next_cursor is None:
                    writer.finish(page.head)
                    return page.head
                page = self.read_audit_chain(after=page.next_cursor, operator=operator)

    def verify_audit(
        self,
        *,
        heads: str | Path | None = None,
        key: str | None = None,
        operator: bool = False,
        progress: Progress | None = None,
    ) -> AuditVerification:
        """Read the whole audit chain of the account and verify it. The result names the first problem, if any.

        `heads` is a file that the setting `audit_head_file` has named: the chain must contain every head in it. `key`
        is the setting `audit_key`; without it, signatures are not checked.
        """
        page = self.read_audit_chain(operator=operator)
        saved = [] if heads is None else read_saved_heads(Path(heads))
        verifier = Verifier(page.head.account_id, saved, key)
        while True:
            verifier.begin(page.head)
            for line in page.lines:
                verifier.add(line)
            if progress is not None:
                progress(verifier.number, max(page.head.number, 1), page.head.account_id)
            if page.next_cursor is None:
                return verifier.finish(page.head, page.unsealed)
            page = self.read_audit_chain(after=page.next_cursor, operator=operator)

    def read_audit_chain(self, *, after: int | None = None, limit: int = 1_000, operator: bool = False) -> AuditExport:
        """Return lines of the audit chain after the line `after`, with everything that proves them."""
        if operator:
            return self._transport.call(ExportOperatorAudit(after=after, limit=limit))
        return self._transport.call(ExportAudit(after=after, limit=limit))

    def record_export(self, session_ids: list[str] | None = None) -> ExportRecorded:
        """Record in the audit log that the caller exports these sessions, or all of them. `export` calls this."""
        return self._transport.call(RecordExport(session_ids=session_ids))
