"""What an export wrote and what an import brought."""

from collections.abc import Callable
from typing import Literal

from holdfast.model.base import WireStruct

Progress = Callable[[int, int, str], None]
"""Takes how many messages are done, of how many, and the session at hand."""


State = Literal["imported", "completed", "already there", "failed"]
"""`completed`: it was there in part, as after an import that was interrupted."""


class ExportedSession(WireStruct, frozen=True, kw_only=True):
    session_id: str
    messages: int
    state: Literal["exported", "removed", "gone"]
    """`removed` from the folder, as it is no longer in Holdfast; `gone` from Holdfast before its turn came."""


class ExportReport(WireStruct, frozen=True, kw_only=True):
    folder: str
    sessions: list[ExportedSession]


class ImportedSession(WireStruct, frozen=True, kw_only=True):
    session_id: str
    messages: int
    """As many as the source has, unless it failed."""
    added: int
    """As many as were not there before."""
    state: State
    reason: str = ""
    """Why it failed, or in what it differs from what it was."""


class ImportReport(WireStruct, frozen=True, kw_only=True):
    format: str
    """The one that was recognised."""
    dry_run: bool
    """Whether the states say what would have been done."""
    sessions: list[ImportedSession]

    @property
    def failed(self) -> list[ImportedSession]:
        return [session for session in self.sessions if session.state == "failed"]
