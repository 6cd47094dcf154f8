"""Failures of the storage under SQLite, as errors that say what happened and what to do."""

import apsw

from holdfast.errors import UnavailableError

# What fails for the whole file rather than for one statement.
STORAGE_FAILURES = (
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
    apsw.NoFTS5Error,  # so apsw calls any failure to read the file that it meets while it looks for FTS5
)


class Explained:
    """Turns failures of the storage into errors that say what happened and what to do."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, STORAGE_FAILURES):
            raise _unavailable(error) from error


explained_failures = Explained()


def _unavailable(error: apsw.Error) -> UnavailableError:
    match error:
        case apsw.FullError():
            message = "the disk is full: nothing was written; free some space and try again"
        case apsw.BusyError() | apsw.LockedError():
            message = "another process kept the database locked: nothing was written; try again"
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError() | apsw.NoFTS5Error():
            message = "the database file cannot be opened for writing: check its folder and permissions"
        case apsw.CorruptError() | apsw.NotADBError():
            message = "the file is damaged or not a Holdfast database: restore it from a backup"
        case _:
            message = "the disk failed: the outcome of this call is unknown until it is tried again"
    return UnavailableError(f"{message} ({error})", service="sqlite", reason=type(error).__name__)
