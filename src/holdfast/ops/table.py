"""The table of operations, as data: what can be asked, what comes back, who may, and where it is on the wire."""

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict

from holdfast.errors import InvalidArgumentError, shown
from holdfast.model.identity import AccessRole
from holdfast.storable import storable_text
from holdfast.validation import conform, prebuild_decoder

R = TypeVar("R")
Scope = Literal["tenant", "tenant_or_operator", "account", "all_accounts", "system"]
"""Which accounts an operation reaches, and whether the operator's key alone may call it:

- `tenant`: data of the caller's account; the operator's key is refused.
- `tenant_or_operator`: data of the caller's account; the operator's key reaches it in all accounts.
- `account`: administration of the account in the field `account_id`; only root may name an account not its own.
- `all_accounts`: all accounts at once, or the list of accounts itself.
- `system`: the caller's identity and the state of the server, for every key.
"""

PLAIN = {str, int, float, bool, type(None)}


class Operation(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """Base of every operation, and what it results in. Operations are values: they can be stored, sent, replayed."""

    @classmethod
    def translated(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """The operation's own fields, where others stand for them."""
        return fields


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What the table knows of an operation."""

    returns: Any
    role: AccessRole
    """The least role that may ask for it."""
    verb: str
    path: str
    audited: bool
    """Whether the gate writes an audit record; a log row (a message, a use) is its own."""
    scope: Scope
    bare: str | None
    """The field of the result that stands alone on the wire; the others stand beside it."""
    stream: bool
    """Whether the wire can deliver its pages as a stream of events."""
    retriable: bool
    """Whether it can be asked again when no answer came: it changes nothing, or the same a second time."""


OPERATIONS: dict[type[Operation[Any]], Entry] = {}

O = TypeVar("O", bound=Operation[Any])  # noqa: E741 - an operation


def operation(
    route: str,
    *,
    role: AccessRole = "user",
    audited: bool = False,
    scope: Scope = "tenant",
    bare: str | None = None,
    stream: bool = False,
) -> Callable[[type[O]], type[O]]:
    """Enter an operation in the table."""
    verb, path = route.split()

    def enter(cls: type[O]) -> type[O]:
        _check_scope(cls, scope)
        (returns,) = (get_args(base)[0] for base in getattr(cls, "__orig_bases__", ()) if get_origin(base) is Operation)
        OPERATIONS[cls] = Entry(
            returns=returns,
            role=role,
            verb=verb,
            path=f"/api/v1{path}",
            audited=audited,
            scope=scope,
            bare=bare,
            stream=stream,
            retriable=verb in {"GET", "PUT"},
        )
        return prebuild_decoder(cls)

    return enter


def _check_scope(cls: type[Operation[Any]], scope: Scope) -> None:
    """An `account_id` is in the operation exactly where the scope reads it."""
    names_account = "account_id" in cls.__struct_fields__
    if scope not in get_args(Scope):
        raise TypeError(f"{cls.__name__} has the scope {scope!r}; use one of {', '.join(get_args(Scope))}")
    if scope == "account" and not names_account:
        raise TypeError(f"{cls.__name__} has the scope account but no field account_id; add it or change the scope")
    if names_account and scope not in {"account", "all_accounts"}:
        raise TypeError(f"{cls.__name__} has the field account_id, which the scope {scope} ignores; use account")


def fields_of(op: Operation[Any]) -> dict[str, Any]:
    """The operation as plain fields: msgspec takes a ready-made struct on trust, and the caller may have made it."""
    given = {
        name: value if type(value) in PLAIN else _opened(value)
        for name, value in asdict(op).items()
        if value is not None and value is not UNSET
    }
    for name in _needed(type(op)):
        if name not in given and getattr(op, name) is None:
            given[name] = None
    return given


@cache
def _needed(cls: type[Operation[Any]]) -> tuple[str, ...]:
    """The fields for which None is not the same as leaving them out."""
    return tuple(field.name for field in msgspec.structs.fields(cls) if field.default is not None)


def checked(cls: type[O], fields: dict[str, Any], *, strict: bool = True) -> O:
    """The operation with every field of the right type and within its bounds, or InvalidArgumentError.

    `strict=False` also reads numbers from text, as they are in a query.
    """
    fields = cls.translated(fields)
    valid = conform(fields, cls, strict=strict)
    for name, value in fields.items():
        if isinstance(value, str) and (not value.isascii() or "\0" in value) and name in cls.__struct_fields__:
            storable_text(name, value)
    if not strict:
        _refuse_null(valid, fields)
    return valid


def _refuse_null(valid: Operation[Any], fields: dict[str, Any]) -> None:
    """Refuse the text "null": without strict typing, msgspec reads it as None."""
    for name, value in fields.items():
        if isinstance(value, str) and getattr(valid, name, value) is None:
            raise InvalidArgumentError(name, f"{shown(value)} is not a value of it; leave it out instead")


def _opened(value: Any) -> Any:
    if isinstance(value, msgspec.Struct) and not type(value).__struct_config__.tag:
        return {name: _opened(item) for name, item in msgspec.structs.asdict(value).items()}
    return [_opened(item) for item in value] if isinstance(value, list) else value
