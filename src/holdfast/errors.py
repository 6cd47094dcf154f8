"""All errors that Holdfast raises. Each class has an error code and an HTTP status."""

import reprlib
from typing import Any, ClassVar

_short_repr = reprlib.Repr()
_short_repr.maxstring = _short_repr.maxother = 80


def short_repr(value: Any) -> str:
    """The `repr` of a value, truncated for an error message."""
    return _short_repr.repr(value)


class HoldfastError(Exception):
    """Base of all errors that Holdfast raises on purpose.

    `code` names the kind of error. `message` states what is wrong and what to do. `details` has the values that a
    program needs to handle the error.
    """

    code: ClassVar[str] = "INTERNAL"
    status: ClassVar[int] = 500
    denies_access: bool = False
    """Whether the caller tried what they may not do. The audit log records it."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), self.message, self.details)

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "details": self.details}


def rebuild(cls: type[HoldfastError], message: str, details: dict[str, Any]) -> HoldfastError:
    """Rebuild an error from its parts, in another process or for another caller."""
    error = cls.__new__(cls)
    HoldfastError.__init__(error, message, **details)
    return error


class InvalidArgumentError(HoldfastError):
    """A field has an invalid value. `details` has the `field` and the `problem`."""

    code = "INVALID_ARGUMENT"
    status = 400

    def __init__(self, field: str, problem: str, **details: Any) -> None:
        super().__init__(f"{field}: {problem}", field=field, problem=problem, **details)


class DocumentError(InvalidArgumentError):
    """A file cannot be read as a document. `details` has the `name` of the file and the `problem`."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__("file", f"{short_repr(name)} {problem}", name=name)


class ProcessingError(HoldfastError):
    """What was uploaded or fetched cannot be added: it is damaged, or none of its files can be read."""

    code = "PROCESSING_ERROR"
    status = 500


class InvalidUriError(HoldfastError):
    """A URI is malformed: nothing can exist at it. `details` has the `uri` and the `reason`."""

    code = "INVALID_URI"
    status = 400

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__(f"{short_repr(uri)} {reason}", uri=uri, reason=reason)


class PermissionDeniedError(HoldfastError):
    """The caller's role or account does not allow the operation."""

    code = "PERMISSION_DENIED"
    status = 403
    denies_access = True


class NotFoundError(HoldfastError):
    """A resource does not exist, or belongs to another user. The two cases are not distinguishable."""

    code = "NOT_FOUND"
    status = 404

    def __init__(self, type: str, resource: str) -> None:
        super().__init__(f"{type.capitalize()} {resource} not found", type=type, resource=resource)


class AlreadyExistsError(HoldfastError):
    """A resource with this id exists."""

    code = "ALREADY_EXISTS"
    status = 409


class ConflictError(HoldfastError):
    """The current state differs from the one that the caller expected. `details` has the current state."""

    code = "CONFLICT"
    status = 409


class FailedPreconditionError(HoldfastError):
    """The system is not in a state in which the operation is possible."""

    code = "FAILED_PRECONDITION"
    status = 412


class UnavailableError(HoldfastError):
    """A service is temporarily unavailable. Nothing was acknowledged; the same call may succeed later."""

    code = "UNAVAILABLE"
    status = 503

    def __init__(self, message: str, *, service: str, reason: str) -> None:
        super().__init__(message, service=service, reason=reason)


class DataDamagedError(HoldfastError):
    """Stored data is damaged. `details` has the `table` and, where it is known, the `row`.

    A retry cannot succeed. `holdfast doctor --deep` finds all damage.
    """

    code = "DATA_DAMAGED"
    status = 500

    def __init__(self, message: str, *, table: str, row: str = "") -> None:
        super().__init__(
            f"{message}; run `holdfast doctor --deep` to list all damage, and restore a backup", table=table, row=row
        )


class UnauthenticatedError(HoldfastError):
    """The API key is missing or invalid."""

    code = "UNAUTHENTICATED"
    status = 401


class MethodNotAllowedError(HoldfastError):
    """The path exists, but not with this HTTP method. `details` has the allowed methods."""

    code = "METHOD_NOT_ALLOWED"
    status = 405


class ResourceExhaustedError(HoldfastError):
    """A limit is exceeded. If `details` has `retry_after`, the call may succeed after that many seconds."""

    code = "RESOURCE_EXHAUSTED"
    status = 429


class TooLargeError(ResourceExhaustedError):
    """The request or the result is too large. A retry cannot succeed."""

    status = 413


class DeadlineExceededError(HoldfastError):
    """The operation timed out. Its outcome is unknown."""

    code = "DEADLINE_EXCEEDED"
    status = 504


class TooSlowError(DeadlineExceededError):
    """The request was not received in time, so nothing was done."""

    status = 408


def from_wire(code: str, message: str, details: dict[str, Any], status: int | None = None) -> HoldfastError:
    """Build the error that a server's response describes. The status decides between classes that share a code."""
    classes = [cls for parent in HoldfastError.__subclasses__() for cls in (parent, *parent.__subclasses__())]
    matching = sorted((cls for cls in classes if cls.code == code), key=lambda cls: cls.status != status)
    error = rebuild(matching[0] if matching else HoldfastError, message, details)
    if not matching:
        error.code = code  # type: ignore[misc]  # the server may be newer and have more codes
    return error


def describe_unexpected(error: Exception) -> str:
    """Return the type of an error and the innermost line of Holdfast in its traceback.

    Its message is left out: it may quote a conversation.
    """
    location, traceback = "an unknown place", error.__traceback__
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__"))
        if module.startswith("holdfast."):
            location = f"{module}, line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return f"{type(error).__name__} in {location}"
