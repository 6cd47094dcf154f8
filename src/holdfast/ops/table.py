"""The table of operations: for each its result type, required role, scope, audit record and HTTP route."""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from string import Formatter
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict

from holdfast.errors import InvalidArgumentError, short_repr
from holdfast.model.access import RIGHT_BITS, RequiredRight
from holdfast.model.identity import AccessRole
from holdfast.storable import storable_text
from holdfast.validation import convert, parse_iso_time, prebuild_decoder

R = TypeVar("R")
Scope = Literal["tenant", "tenant_or_operator", "account", "all_accounts", "system"]
"""Which accounts an operation has access to, and whether the operator may call it:

- `tenant`: data of the caller's account; the operator's key is rejected.
- `tenant_or_operator`: data of the caller's account; the operator's key has access in all accounts.
- `account`: administration of the account in the field `account_id`; only root may name another account than its own.
- `all_accounts`: all accounts at once, or the list of accounts itself.
- `system`: the caller's identity and the state of the server, for every key.
"""

RequiredRole = AccessRole | Literal["any"]
"""The role that an operation needs, or `any`. `engine/gate/access` has the roles that may call it."""

Answer = Literal["bounded", "paged", "streamed"]
"""What limits the size of an answer:

- `bounded`: its rows are small and `limit` has a maximum.
- `paged`: a server ends it at `max_response_bytes`. It has a cursor, and `following` reads the rest.
- `streamed`: nothing; a server reads and sends it page by page.
"""
CURSOR_FIELDS = {"limit", "node_limit", "after", "cursor", "offset"}
"""Fields of operations with answers of any length. Each such operation states its `answer`."""
SCALAR_TYPES = {str, int, float, bool, type(None)}


class Operation(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """The base of all operations, with the type of the result. Operations are values: they can be stored and sent."""

    @classmethod
    def translate(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of the operation, translated from other formats that it accepts."""
        return fields

    @property
    def invokes_tools(self) -> bool:
        """Whether it adds tool calls or results to a session. It then needs the right `invoke`, too."""
        return False

    @property
    def returns_content(self) -> bool:
        """Whether a change returns what only readers of the session may see. It then needs the right `read`, too."""
        return False

    @property
    def needs_ownership(self) -> bool:
        """Whether these values of its fields are only for the owner of the session."""
        return False

    def following(self, page: R) -> "Operation[R] | None":  # noqa: ARG002
        """Return the operation that reads what a paged answer left out, or None if the page is complete.

        A page is complete at its end or at the limit that the caller chose.
        """
        return None

    def join(self, page: R, next_page: R) -> R:  # noqa: ARG002
        """Return one page with the items of two. The second is the result of what `following` returned."""
        return next_page


class OperationEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An operation in the table."""

    returns: Any
    role: RequiredRole
    """The role that the caller needs."""
    right: RequiredRight | None
    """The right on the session in the field `session_id` that the caller needs. None if it names no session."""
    verb: str
    path: str
    audit: str | None
    """What the audit record names: a format string of the operation's fields and of `result`, such as `{task_id}`.

    None writes no line: the operation changes nothing, or its log row (a message, a use) is the record.
    """
    scope: Scope
    result_field: str | None
    """The field of the result that is `result` in the response body; the other fields are next to it."""
    stream: bool
    """Whether HTTP can deliver its pages as a stream of events."""
    answer: Answer
    """What limits the size of its answer."""
    reads: bool
    """Whether it changes nothing."""
    is_retryable: bool
    """Whether it can be sent again if there was no response: it changes nothing, or repeating it has no effect."""


OPERATIONS: dict[type[Operation[Any]], OperationEntry] = {}

O = TypeVar("O", bound=Operation[Any])  # noqa: E741 - an operation


def operation(
    route: str,
    *,
    role: RequiredRole | None = None,
    right: RequiredRight | None = None,
    audit: str | None = None,
    scope: Scope = "tenant",
    result_field: str | None = None,
    stream: bool = False,
    answer: Answer | None = None,
    reads: bool = False,
) -> Callable[[type[O]], type[O]]:
    """Return a decorator that adds an operation to the table.

    Without a `role`, users may call it. So may guests if it reads or writes a session: the right decides. With
    `reads`, it changes nothing although its verb is POST, because its fields do not fit into a URL.
    """
    verb, path = route.split()
    default_role: RequiredRole = "guest" if right in {"read", "write"} else "user"

    def register(cls: type[O]) -> type[O]:
        _check_scope(cls, scope)
        _check_right(cls, right, path)
        _check_audit(cls, audit)
        _check_answer(cls, answer)
        bases = getattr(cls, "__orig_bases__", ())
        (returns,) = (get_args(base)[0] for base in bases if get_origin(base) is Operation)
        prebuild_decoder(returns)
        OPERATIONS[cls] = OperationEntry(
            returns=returns,
            role=role or default_role,
            right=right,
            verb=verb,
            path=f"/api/v1{path}",
            audit=audit,
            scope=scope,
            result_field=result_field,
            stream=stream,
            answer=answer or "bounded",
            reads=reads or verb == "GET",
            is_retryable=reads or verb in {"GET", "PUT"},
        )
        return prebuild_decoder(cls)

    return register


def _check_scope(cls: type[Operation[Any]], scope: Scope) -> None:
    """Raise TypeError if the scope needs a field `account_id` that is missing, or the field exists without need."""
    names_account = "account_id" in cls.__struct_fields__
    if scope not in get_args(Scope):
        raise TypeError(f"{cls.__name__} has the scope {scope!r}; use one of {', '.join(get_args(Scope))}")
    if scope == "account" and not names_account:
        raise TypeError(f"{cls.__name__} has the scope account but no field account_id; add it or change the scope")
    if names_account and scope not in {"account", "all_accounts"}:
        raise TypeError(f"{cls.__name__} has the field account_id, which the scope {scope} ignores; use account")


def _check_right(cls: type[Operation[Any]], right: RequiredRight | None, path: str) -> None:
    """Raise TypeError unless an operation on a session has the field `owner`, and declares the right that it needs."""
    fields = set(cls.__struct_fields__)
    if right is not None and not {"session_id", "owner"} <= fields:
        raise TypeError(f"{cls.__name__} needs the right {right} but has no fields session_id and owner; add them")
    if right is None and "{session_id}" in path:
        raise TypeError(f"{cls.__name__} names a session but declares no right; use one of any, read, write, own")


def rights_needed(op: Operation[Any]) -> int:
    """Return the rights on its session that an operation needs, as a number."""
    right = "own" if op.needs_ownership else OPERATIONS[type(op)].right
    bits = 0 if right is None else RIGHT_BITS[right]
    bits |= RIGHT_BITS["read"] if op.returns_content else 0
    return bits | (RIGHT_BITS["invoke"] if op.invokes_tools else 0)


def _check_audit(cls: type[Operation[Any]], audit: str | None) -> None:
    """Raise TypeError unless the audit record names only fields of the operation or `{result.field}`."""
    named = {name.split(".")[0] for _, name, _, _ in Formatter().parse(audit or "") if name is not None}
    unknown = named - set(cls.__struct_fields__) - {"result"}
    if unknown:
        raise TypeError(
            f"{cls.__name__} has no field {unknown.pop()}, which its audit record names; use one of its fields"
        )
    if audit is not None and "result" in cls.__struct_fields__:
        raise TypeError(
            f"{cls.__name__} has a field result, which the audit record needs for its result; rename the field"
        )


def _check_answer(cls: type[Operation[Any]], answer: Answer | None) -> None:
    """Raise TypeError unless an operation with a cursor states what limits its answer."""
    cursor = CURSOR_FIELDS & set(cls.__struct_fields__)
    if cursor and answer is None:
        raise TypeError(f"{cls.__name__} has the field {min(cursor)} but no answer; use {', '.join(get_args(Answer))}")
    if (answer == "paged") != (cls.following is not Operation.following):
        raise TypeError(f"{cls.__name__} must define following and join if its answer is paged, and only then")


def fields_of(op: Operation[Any]) -> dict[str, Any]:
    """Return the fields of an operation as plain values.

    msgspec does not validate a struct that was constructed directly, so its fields are validated again.
    """
    given = {
        name: value if type(value) in SCALAR_TYPES else _to_builtins(value)
        for name, value in asdict(op).items()
        if value is not None and value is not UNSET
    }
    for name in _fields_without_none_default(type(op)):
        if name not in given and getattr(op, name) is None:
            given[name] = None
    return given


@cache
def _fields_without_none_default(cls: type[Operation[Any]]) -> tuple[str, ...]:
    """Return the fields for which None differs from a missing value."""
    return tuple(field.name for field in msgspec.structs.fields(cls) if field.default is not None)


def validate_operation(cls: type[O], fields: dict[str, Any], *, strict: bool = True) -> O:
    """Return the operation with validated fields, or raise InvalidArgumentError.

    `strict=False` also accepts numbers as strings, as in a query string.
    """
    fields = cls.translate(fields)
    if not strict:
        fields = _read_times(cls, fields)
    valid = convert(fields, cls, strict=strict)
    for name, value in fields.items():
        texts = enumerate(value) if isinstance(value, list) else ((None, value),)
        for number, text in texts:
            if isinstance(text, str) and (not text.isascii() or "\0" in text) and name in cls.__struct_fields__:
                storable_text(name if number is None else f"{name}[{number}]", text)
    if not strict:
        _reject_lenient_values(valid, fields)
    return valid


def _read_times(cls: type[Operation[Any]], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with times for their texts: without strict typing, msgspec takes `20260324` for seconds."""
    times = {name: time for name in _time_fields(cls) if (time := parse_iso_time(fields.get(name))) is not None}
    return {**fields, **times} if times else fields


@cache
def _time_fields(cls: type[Operation[Any]]) -> tuple[str, ...]:
    """Return the fields that hold a time."""
    hints = get_type_hints(cls)
    return tuple(name for name in cls.__struct_fields__ if datetime in {hints[name], *get_args(hints[name])})


def _reject_lenient_values(valid: Operation[Any], fields: dict[str, Any]) -> None:
    """Reject the string "null", and a number as a time: without strict typing, msgspec accepts both."""
    for name, value in fields.items():
        converted = getattr(valid, name, value)
        if isinstance(value, str) and converted is None:
            raise InvalidArgumentError(name, f"{short_repr(value)} is not a valid value; omit the field instead")
        if isinstance(value, str) and isinstance(converted, datetime) and ":" not in value:
            raise InvalidArgumentError(
                name, f"{short_repr(value)} is not a time; use ISO 8601, such as 2026-03-24T09:10:11Z"
            )


def _to_builtins(value: Any) -> Any:
    if isinstance(value, msgspec.Struct) and not type(value).__struct_config__.tag:
        return {name: _to_builtins(item) for name, item in msgspec.structs.asdict(value).items()}
    return [_to_builtins(item) for item in value] if isinstance(value, list) else value
