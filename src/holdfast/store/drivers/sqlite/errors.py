"""Translates SQLite storage errors into errors that say what happened and what to do."""

import re

import apsw

from holdfast.errors import UnavailableError
from holdfast.store.database import raise_if_cancelled

# Errors of the whole file rather than of one statement.
STORAGE_ERRORS = (
    apsw.FullError,
    apsw.IOError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.ReadOnlyError,
    apsw.PermissionsError,
    apsw.NoMemError,
    apsw.ProtocolError,
    apsw.NoFTS5Error,  # apsw raises this for any read error while it looks up FTS5
)


# Errors of one statement. Correct statements on intact rows do not raise them.
STATEMENT_ERRORS = (apsw.ConstraintError, apsw.MismatchError, apsw.RangeError, apsw.TooBigError, apsw.SQLError)


_CONSTRAINT = re.compile(r"(UNIQUE|NOT NULL|FOREIGN KEY|CHECK) constraint failed(: [\w., ]+)?")


def constraint_problem(error: Exception) -> str:
    """The constraint that a statement broke, with the names of its columns. Empty for other errors.

    Other messages may quote a conversation.
    """
    found = _CONSTRAINT.fullmatch(str(error))
    return found[0] if found else ""


class _ErrorTranslation:
    """A context manager that raises UnavailableError in place of a storage error."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, STORAGE_ERRORS):
            raise unavailable(error) from error
        if isinstance(error, apsw.InterruptError):
            raise_if_cancelled()


translated_errors = _ErrorTranslation()


def unavailable(error: apsw.Error) -> UnavailableError:
    """Return the error that callers get in place of a storage error."""
    match error:
        case apsw.FullError():
            message = "the disk is full: nothing was written; free some space and try again"
        case apsw.BusyError() | apsw.LockedError():
            message = "another process kept the database locked: nothing was written; try again"
        case apsw.NoFTS5Error():
            message = (
                "the database file cannot be read: check its permissions, or run `holdfast doctor --deep` on it: it may"
                " be damaged, or not a Holdfast database"
            )
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            message = "the database file cannot be opened for writing: check its folder and permissions"
        case apsw.CorruptError() | apsw.NotADBError():
            # A disk that cannot be read for a moment can cause this, too, so a retry may succeed.
            message = (
                "the file is damaged or not a Holdfast database: run `holdfast doctor --deep`, and restore a backup"
            )
        case _:
            message = "the disk failed: the outcome of this call is unknown until it is tried again"
    return UnavailableError(f"{message} ({error})", service="sqlite", reason=type(error).__name__)
