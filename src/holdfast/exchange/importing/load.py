"""Import sessions from a file or a folder."""

from pathlib import Path

import msgspec

from holdfast.client.sync.client import Client
from holdfast.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from holdfast.exchange.formats.records import ImportSource, SessionRecord
from holdfast.exchange.importing.recognition import open_source
from holdfast.exchange.importing.sessions import CountCallback, import_session
from holdfast.exchange.reports import ImportedSession, ImportReport, ProgressCallback
from holdfast.storable import storable_json


class SourceCheck(msgspec.Struct):
    """The result of reading a source once before anything is imported."""

    messages: int
    damaged: dict[str, str]
    """The sessions that cannot be read, with the reason."""


def import_path(
    client: Client,
    source: str | Path | None,
    *,
    text: str | None = None,
    format: str = "auto",
    session_id: str | None = None,
    dry_run: bool = False,
    progress: ProgressCallback | None = None,
) -> ImportReport:
    """Import the sessions of a file or a folder, or of `text` if `source` is None.

    The import is safe to repeat. A session that is already stored is left unchanged; a partially stored one is
    completed; one that is stored with different content is reported as failed and left unchanged. The whole source is
    read and checked before anything is written.

    `format` is one of `FORMATS`; `auto` detects it. `session_id` renames the only session of the source. With
    `dry_run`, nothing is written, and the report describes what an import would do.
    """
    opened = open_source(None if source is None else Path(source), text, format, session_id)
    check = _check_source(opened)
    rows: list[ImportedSession] = []
    done = 0
    for record in opened.sessions():
        done_before = done

        def report_count(count: int, *, done_before: int = done_before, session_id: str = record.session_id) -> None:
            if progress is not None:
                progress(min(done_before + count, check.messages), check.messages, session_id)

        rows.append(_import(client, record, check, report_count, dry_run=dry_run))
        done += rows[-1].messages
    if progress is not None:
        progress(check.messages, check.messages, "")
    return ImportReport(format=opened.format, dry_run=dry_run, sessions=rows)


def _check_source(source: ImportSource) -> SourceCheck:
    check = SourceCheck(0, {})
    for record in source.sessions():
        count = 0
        try:
            for count, message in enumerate(record.messages(), 1):
                storable_json(f"{record.session_id}, message {count}", msgspec.to_builtins(message))
            record.uses()
        except InvalidArgumentError as error:
            if not source.is_independent:
                raise
            check.damaged[record.session_id] = error.message
        else:
            check.messages += count
    return check


def _import(
    client: Client, record: SessionRecord, check: SourceCheck, report_count: CountCallback, *, dry_run: bool
) -> ImportedSession:
    damage = check.damaged.get(record.session_id)
    if damage is not None:
        return _failed(record, damage)
    try:
        return import_session(client, record, report_count, dry_run=dry_run)
    except (AlreadyExistsError, ConflictError, InvalidArgumentError, NotFoundError) as error:
        return _failed(record, error.message)
    except ResourceExhaustedError as error:
        if "retry_after" in error.details:  # a rate limit, which concerns all sessions
            raise
        return _failed(record, error.message)


def _failed(record: SessionRecord, reason: str) -> ImportedSession:
    return ImportedSession(session_id=record.session_id, messages=0, added=0, state="failed", reason=reason)
