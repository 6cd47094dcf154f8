"""Errors are data."""

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
]


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_survives_a_trip_to_another_process(error: errors.HoldfastError, again: object) -> None:
    twin = again(error)  # type: ignore[operator]
    assert type(twin) is type(error)
    assert twin.to_dict() == error.to_dict()
    assert str(twin) == str(error) == error.message


def test_every_error_has_a_code_of_its_own_and_a_status() -> None:
    kinds: list[type[errors.HoldfastError]] = [errors.HoldfastError, *errors.HoldfastError.__subclasses__()]
    assert {type(error) for error in ALL} == set(kinds)
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert all(400 <= kind.status < 600 for kind in kinds)


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_an_error_is_rebuilt_from_what_a_server_tells(error: errors.HoldfastError) -> None:
    told = error.to_dict()
    twin = errors.from_wire(told["code"], told["message"], told["details"])
    assert (type(twin), twin.to_dict()) == (type(error), told)


def test_a_code_of_a_later_version_is_kept_as_it_came() -> None:
    told = errors.from_wire("NEWER", "something new", {"a": 1})
    assert told.to_dict() == {"code": "NEWER", "message": "something new", "details": {"a": 1}}
    assert errors.HoldfastError("x").code == "INTERNAL"


def test_an_error_reads_as_the_body_of_a_response() -> None:
    assert errors.NotFoundError("session", "x").to_dict() == {
        "code": "NOT_FOUND",
        "message": "Session x not found",
        "details": {"type": "session", "resource": "x"},
    }
