"""One tree of errors. Each knows its code and its HTTP status; a surface only has to print it."""

import reprlib
from typing import Any, ClassVar

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80


def shown(value: Any) -> str:
    """A value as it stands in a message: as Python writes it, but never long."""
    return _short.repr(value)


class HoldfastError(Exception):
    """Base of all errors that Holdfast raises on purpose.

    An error is data: `code` names its kind, `message` says what was wrong and what to do,
    `details` carries the values a program needs to react.
    """

    code: ClassVar[str] = "INTERNAL"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), self.message, self.details)

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "details": self.details}


def rebuild(cls: type[HoldfastError], message: str, details: dict[str, Any]) -> HoldfastError:
    """The error again, from its parts: in another process, or for another caller."""
    error = cls.__new__(cls)
    HoldfastError.__init__(error, message, **details)
    return error


class InvalidArgumentError(HoldfastError):
    """A value that cannot be accepted. `details` has the `field` and the value's `problem`."""

    code = "INVALID_ARGUMENT"
    status = 400

    def __init__(self, field: str, problem: str, **details: Any) -> None:
        super().__init__(f"{field}: {problem}", field=field, problem=problem, **details)


class InvalidUriError(HoldfastError):
    """A URI that leads nowhere, whatever there is. `details` has the `uri` and the `reason`."""

    code = "INVALID_URI"
    status = 400

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__(f"{shown(uri)} {reason}", uri=uri, reason=reason)


class PermissionDeniedError(HoldfastError):
    code = "PERMISSION_DENIED"
    status = 403


class NotFoundError(HoldfastError):
    """What does not exist and what is not the caller's answer alike."""

    code = "NOT_FOUND"
    status = 404

    def __init__(self, type: str, resource: str) -> None:
        super().__init__(f"{type.capitalize()} {resource} not found", type=type, resource=resource)


class AlreadyExistsError(HoldfastError):
    code = "ALREADY_EXISTS"
    status = 409


class ConflictError(HoldfastError):
    """The state is not the one the caller assumed. `details` tells the current one."""

    code = "CONFLICT"
    status = 409


class FailedPreconditionError(HoldfastError):
    code = "FAILED_PRECONDITION"
    status = 412


class UnavailableError(HoldfastError):
    """Storage could not do it now. Nothing was acknowledged; the same call may succeed later."""

    code = "UNAVAILABLE"
    status = 503

    def __init__(self, message: str, *, service: str, reason: str) -> None:
        super().__init__(message, service=service, reason=reason)


class UnauthenticatedError(HoldfastError):
    """No key, or one that does not work."""

    code = "UNAUTHENTICATED"
    status = 401


class MethodNotAllowedError(HoldfastError):
    """The place exists, and something else can be done there: `details` has what."""

    code = "METHOD_NOT_ALLOWED"
    status = 405


class ResourceExhaustedError(HoldfastError):
    """More than is allowed. If `details` has `retry_after`, that many seconds from now it is allowed again."""

    code = "RESOURCE_EXHAUSTED"
    status = 429


class TooLargeError(ResourceExhaustedError):
    """More than is allowed at once: asking again does not help."""

    status = 413


class DeadlineExceededError(HoldfastError):
    """It took too long. Whether it was done is unknown until it is asked again."""

    code = "DEADLINE_EXCEEDED"
    status = 504


class TooSlowError(DeadlineExceededError):
    """The request did not arrive in time, so nothing was done."""

    status = 408


def from_wire(code: str, message: str, details: dict[str, Any], status: int | None = None) -> HoldfastError:
    """The error that a server told of. Where several kinds share a code, its status tells which."""
    kinds = [kind for parent in HoldfastError.__subclasses__() for kind in (parent, *parent.__subclasses__())]
    fitting = sorted((kind for kind in kinds if kind.code == code), key=lambda kind: kind.status != status)
    error = rebuild(fitting[0] if fitting else HoldfastError, message, details)
    if not fitting:
        error.code = code  # type: ignore[misc]  # a code of a later version is kept as it came
    return error
