"""How operations travel over HTTP: what a request looks like, what an answer means, when to ask again."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from holdfast.config import Settings
from holdfast.engine.engine import RULES
from holdfast.engine.gate.ids import Ids, system_clock
from holdfast.engine.gate.rule import CallContext, Signal
from holdfast.errors import (
    FailedPreconditionError,
    HoldfastError,
    InvalidArgumentError,
    UnavailableError,
    from_wire,
    shown,
)
from holdfast.model.identity import AccessRole, Principal
from holdfast.ops.sessions import AddMessage, AddMessages
from holdfast.ops.table import OPERATIONS, Operation, checked, fields_of
from holdfast.storable import plain
from holdfast.validation import prebuild_decoder

R = TypeVar("R")

FIRST_WAIT = 0.05
MAX_WAIT = 5.0
CONNECT_SECONDS = 5.0
KEEP_SECONDS = 4.0
"""Shorter than a server keeps an idle connection, so that we are the one who ends it."""

NOTHING_DONE = {408, 429}
"""Answers that say the request was turned away before anything happened."""
PERHAPS_LATER = {*NOTHING_DONE, 502, 503, 504}


class Request(msgspec.Struct, frozen=True):
    verb: str
    path: str
    query: dict[str, str]
    body: bytes | None
    retriable: bool
    """Whether asking again does no harm when the answer was lost."""


class Problem(msgspec.Struct, frozen=True):
    code: str = "INTERNAL"
    message: str = ""
    details: dict[str, Any] | None = None


@prebuild_decoder
class Answer(msgspec.Struct, frozen=True):
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: Problem | None = None


class HttpCodec:
    """Turns operations into requests and answers into results; the network is somebody else's."""

    def __init__(self, url: str, headers: dict[str, str], settings: Settings) -> None:
        self.url = url
        self.headers = headers
        self.settings = settings
        self.ids = Ids(system_clock)

    def request(self, op: Operation[Any]) -> Request:
        """The request for `op`. What is wrong with it is said here, in the words of the gate, before it is sent."""
        cls, entry = type(op), OPERATIONS[type(op)]
        valid = checked(cls, fields_of(op))
        context = CallContext(system_clock(), self.ids, self.settings, lambda: 0, Signal())
        RULES[cls].prepare(context, Principal(), valid)
        keyed = isinstance(valid, AddMessage | AddMessages)
        if keyed and valid.idempotency_key is None:  # type: ignore[attr-defined]  # as just asked
            valid = msgspec.structs.replace(valid, idempotency_key=self.ids.new("idem"))
        said = _said(valid)
        in_path = {name: quote(str(said.pop(name)), safe="") for name in list(said) if f"{{{name}}}" in entry.path}
        in_query = entry.verb in {"GET", "DELETE"}
        return Request(
            verb=entry.verb,
            path=entry.path.format_map(in_path),
            query={name: _as_query(value) for name, value in said.items()} if in_query else {},
            body=None if in_query else msgspec.json.encode(said, enc_hook=plain),
            retriable=entry.retriable or keyed,
        )

    def result(self, op: Operation[R], status: int, content: bytes) -> R:
        """What an answer says: the operation's result, or its error, raised."""
        entry = OPERATIONS[type(op)]
        try:
            answer = msgspec.json.decode(content, type=Answer)
            if answer.error is None and status < 400:  # noqa: PLR2004 - where errors begin
                if entry.bare is None:
                    return msgspec.json.decode(answer.result, type=entry.returns)  # type: ignore[no-any-return]
                beside = msgspec.json.decode(content)
                return msgspec.convert({**beside, entry.bare: beside["result"]}, entry.returns)  # type: ignore[no-any-return]
        except msgspec.MsgspecError as error:
            raise self._not_ours(status, f"{content[:80]!r}: {error}") from None
        if answer.error is None:
            raise self._not_ours(status, shown(content.decode(errors="replace")))
        raise from_wire(answer.error.code, answer.error.message, answer.error.details or {}, status)

    def _not_ours(self, status: int, seen: str) -> HoldfastError:
        return UnavailableError(
            f"{self.url} answered {status} with something that is not Holdfast's: {seen}; check the URL",
            service="http",
            reason="not an answer of Holdfast",
        )

    def options(self, httpx: Any) -> dict[str, Any]:
        """What the library needs to know to open connections."""
        return {
            "base_url": self.url,
            "headers": self.headers,
            "verify": self.url.startswith("https:"),  # to get ready for TLS takes longer than many requests
            "timeout": httpx.Timeout(self.settings.http_timeout_seconds, connect=CONNECT_SECONDS),
            "limits": httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=KEEP_SECONDS),
        }

    def unreachable(self, error: Exception, *, sent: bool) -> UnavailableError:
        reason = str(error) or type(error).__name__
        advice = (
            "the outcome of this call is unknown; retry it with the same idempotency key"
            if sent
            else "check that the server runs there"
        )
        return UnavailableError(
            f"{self.url} does not answer: {reason}; {advice}", service="http", reason=type(error).__name__
        )

    def require_open(self, *, closed: bool) -> None:
        if closed:
            raise FailedPreconditionError("this client was closed; connect again to use it")

    def waits(self) -> Iterator[float | None]:
        """How long to wait after each attempt: twice as long each time, never all at the same moment; None at last."""
        wait = FIRST_WAIT
        for _ in range(self.settings.http_attempts - 1):
            yield wait * (0.5 + self.ids.chance() / 2**49)
            wait = min(2 * wait, MAX_WAIT)
        yield None

    def asks_again(self, request: Request, status: int) -> bool:
        return status in NOTHING_DONE or (request.retriable and status in PERHAPS_LATER)


def headers_for(api_key: str | None, account: str | None, user: str | None, role: AccessRole | None) -> dict[str, str]:
    given = {
        "X-API-Key": api_key,
        "X-OpenViking-Account": account,
        "X-OpenViking-User": user,
        "X-OpenViking-Role": role,
    }
    for name, value in given.items():
        if value is not None and not re.fullmatch(r"[!-~]+", value):
            field = "api_key" if name == "X-API-Key" else name
            raise InvalidArgumentError(field, "has a character that cannot be sent; check it for a space or a line end")
    return {"Content-Type": "application/json", **{name: value for name, value in given.items() if value is not None}}


def retry_after_seconds(headers: Mapping[str, str], planned: float) -> float:
    """The server's own word on when to come back, if it gave one."""
    try:
        return max(planned, min(float(headers.get("Retry-After", planned)), 60.0))
    except ValueError:
        return planned


def _said(op: Operation[Any]) -> dict[str, Any]:
    """The fields that are not at their defaults."""
    return {
        field.name: value
        for field in msgspec.structs.fields(op)
        for value in [getattr(op, field.name)]
        if value is not msgspec.UNSET and (field.required or value != field.default)
    }


def _as_query(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
