"""Sessions, from files into Holdfast."""

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
from holdfast.exchange.formats.records import SessionRecord, Source
from holdfast.exchange.importing.recognition import open_source
from holdfast.exchange.importing.sessions import Told, bring
from holdfast.exchange.reports import ImportedSession, ImportReport, Progress
from holdfast.storable import storable_json


class Survey(msgspec.Struct):
    """What a source holds, by a first look through all of it that changes nothing."""

    messages: int
    damaged: dict[str, str]
    """Sessions that cannot be read, and why."""


def import_path(
    client: Client,
    source: str | Path | None,
    *,
    text: str | None = None,
    format: str = "auto",
    session_id: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Bring in the sessions of a file or a folder, or of `text` if there is no `source`.

    It is safe to repeat: what is there is left as it is, what is there in part is completed, and a session that has
    other content is reported as failed and not touched. The source is read through before anything is changed.
    `session_id` renames the source's only session; with a `dry_run` the report says what would be done.
    """
    found = open_source(None if source is None else Path(source), text, format, session_id)
    survey = _survey(found)
    rows: list[ImportedSession] = []
    done = 0
    for record in found.sessions():
        before = done

        def told(count: int, *, before: int = before, session_id: str = record.session_id) -> None:
            if progress is not None:
                progress(min(before + count, survey.messages), survey.messages, session_id)

        rows.append(_import(client, record, survey, told, dry_run=dry_run))
        done += rows[-1].messages
    if progress is not None:
        progress(survey.messages, survey.messages, "")
    return ImportReport(format=found.format, dry_run=dry_run, sessions=rows)


def _survey(source: Source) -> Survey:
    survey = Survey(0, {})
    for record in source.sessions():
        count = 0
        try:
            for count, message in enumerate(record.messages(), 1):
                storable_json(f"{record.session_id}, message {count}", msgspec.to_builtins(message))
            record.uses()
        except InvalidArgumentError as error:
            if not source.apart:
                raise
            survey.damaged[record.session_id] = error.message
        else:
            survey.messages += count
    return survey


def _import(client: Client, record: SessionRecord, survey: Survey, told: Told, *, dry_run: bool) -> ImportedSession:
    damage = survey.damaged.get(record.session_id)
    if damage is not None:
        return _failed(record, damage)
    try:
        return bring(client, record, told, dry_run=dry_run)
    except (AlreadyExistsError, ConflictError, InvalidArgumentError, NotFoundError) as error:
        return _failed(record, error.message)
    except ResourceExhaustedError as error:
        if "retry_after" in error.details:  # it is not about this session
            raise
        return _failed(record, error.message)


def _failed(record: SessionRecord, reason: str) -> ImportedSession:
    return ImportedSession(session_id=record.session_id, messages=0, added=0, state="failed", reason=reason)
