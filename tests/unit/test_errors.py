"""Errors have a code, a message and details, and can be serialised."""

import copy
import pickle

import pytest

from holdfast import errors

ALL = [
    errors.HoldfastError("boom", a=1),
    errors.InvalidArgumentError("field", "is bad"),
    errors.PermissionDeniedError("no"),
    errors.NotFoundError("session", "x"),
    errors.AlreadyExistsError("x exists", resource="x", type="session"),
    errors.ConflictError("moved", current_seq=3),
    errors.FailedPreconditionError("not now"),
    errors.UnavailableError("down", service="sqlite", reason="FullError"),
    errors.UnauthenticatedError("no key"),
    errors.InvalidUriError("viking://nowhere", "leads nowhere"),
    errors.MethodNotAllowedError("not here", allow="GET"),
    errors.ResourceExhaustedError("too many", retry_after=1.5),
    errors.DeadlineExceededError("too late"),
    errors.ProcessingError("the archive is damaged"),
    errors.DataDamagedError("a row is damaged", table="messages", row="7"),
]


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("duplicate", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_can_be_copied_and_pickled(error: errors.HoldfastError, duplicate: object) -> None:
    copied = duplicate(error)  # type: ignore[operator]
    assert type(copied) is type(error)
    assert copied.to_dict() == error.to_dict()
    assert str(copied) == str(error) == error.message


def test_every_error_has_a_unique_code_and_a_status() -> None:
    kinds: list[type[errors.HoldfastError]] = [errors.HoldfastError, *errors.HoldfastError.__subclasses__()]
    assert {type(error) for error in ALL} == set(kinds)
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert all(400 <= kind.status < 600 for kind in kinds)


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_an_error_is_rebuilt_from_a_server_response(error: errors.HoldfastError) -> None:
    wire = error.to_dict()
    copied = errors.from_wire(wire["code"], wire["message"], wire["details"])
    assert (type(copied), copied.to_dict()) == (type(error), wire)


def test_an_unknown_code_of_a_newer_server_is_kept() -> None:
    error = errors.from_wire("NEWER", "something new", {"a": 1})
    assert error.to_dict() == {"code": "NEWER", "message": "something new", "details": {"a": 1}}
    assert errors.HoldfastError("x").code == "INTERNAL"


def test_an_error_as_a_dictionary_is_the_body_of_a_response() -> None:
    assert errors.NotFoundError("session", "x").to_dict() == {
        "code": "NOT_FOUND",
        "message": "Session x not found",
        "details": {"type": "session", "resource": "x"},
    }
