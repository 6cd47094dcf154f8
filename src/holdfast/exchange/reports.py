"""The results of an export and of an import."""

from collections.abc import Callable
from typing import Literal

from holdfast.model.base import WireStruct

ProgressCallback = Callable[[int, int, str], None]
"""Called with the number of messages done, the total, and the id of the current session."""


ImportState = Literal["imported", "completed", "already there", "failed"]
"""`completed`: a part of the session existed before, for example after an interrupted import."""


class ExportedSession(WireStruct, frozen=True, kw_only=True):
    session_id: str
    messages: int
    state: Literal["exported", "removed", "gone"]
    """`removed`: deleted from the folder, since the session no longer exists.
    `gone`: the session was deleted while the export ran."""


class ExportReport(WireStruct, frozen=True, kw_only=True):
    folder: str
    sessions: list[ExportedSession]
    other_mounts: list[str]
    """The URIs of the exported files and folders beside the sessions."""


class ImportedSession(WireStruct, frozen=True, kw_only=True):
    session_id: str
    messages: int
    """The number of messages in the source; 0 if the import failed."""
    added: int
    """The number of messages that were not stored before."""
    state: ImportState
    reason: str = ""
    """Why the import failed, or how the imported session differs from the original."""


class ImportReport(WireStruct, frozen=True, kw_only=True):
    format: str
    """The format that was detected."""
    dry_run: bool
    """Whether the states describe what an import would do."""
    sessions: list[ImportedSession]

    @property
    def failed(self) -> list[ImportedSession]:
        return [session for session in self.sessions if session.state == "failed"]
