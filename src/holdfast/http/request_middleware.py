"""Around every request: its id, its time, a line in the log, a count, and an answer whatever happens."""

import asyncio
import itertools
import re
import time
from collections.abc import MutableMapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.errors import HoldfastError, UnavailableError
from holdfast.http import responses
from holdfast.http.server_state import ServerState
from holdfast.model.identity import Principal

_SANE = re.compile(rb"[\x21-\x7e]{1,128}")


class RequestRecord:
    """What is known of a request so far."""

    __slots__ = ("began", "operation", "principal", "request_id", "status")

    def __init__(self, request_id: bytes) -> None:
        self.began = time.perf_counter()
        self.request_id = request_id
        self.operation = "page"
        self.status = 0
        self.principal: Principal | None = None

    def seconds(self) -> float:
        return time.perf_counter() - self.began


class RequestMiddleware:
    """What the server shows to the world: operations below `/api/`, and pages."""

    def __init__(self, state: ServerState, operations: ASGIApp, pages: ASGIApp) -> None:
        self._state = state
        self._operations = operations
        self._pages = pages
        self._prefix = state.engine.ids.new("req")[:-8].encode()
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        app = self._operations if scope["path"].startswith("/api/") else self._pages
        note = scope["note"] = RequestRecord(self._request_id(scope))

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                note.status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", note.request_id),
                    (b"x-process-time", b"%.6f" % note.seconds()),
                ]
            await send(message)

        try:
            await app(scope, receive, sending)
        except asyncio.CancelledError:  # the server has waited for long enough, and ends
            if not note.status:
                await responses.send(responses.failure(_stopping()), sending)
        except Exception:  # noqa: BLE001 - whatever it is, the caller gets an answer and the log the story
            self._state.log.failure("failed", request_id=note.request_id.decode(), operation=note.operation)
            if not note.status:
                await _apologise(note, sending)
        finally:
            self._write_down(note)

    def _request_id(self, scope: Scope) -> bytes:
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _SANE.fullmatch(value):
                given: bytes = value
                return given
        return b"%b%08x" % (self._prefix, next(self._numbers))

    def _write_down(self, note: RequestRecord) -> None:
        seconds = note.seconds()
        self._state.metrics.answered(note.operation, note.status, seconds)
        principal = note.principal
        self._state.log.write(
            "info",
            "request",
            request_id=note.request_id.decode(),
            operation=note.operation,
            status=note.status,
            ms=round(seconds * 1_000, 3),
            account=principal.account_id if principal else None,
            user=principal.user_id if principal else None,
        )


def _stopping() -> UnavailableError:
    return UnavailableError(
        "the server stops: the outcome of this call is unknown; retry it with the same idempotency key",
        service="http",
        reason="stopping",
    )


async def _apologise(note: RequestRecord, send: Send) -> None:
    told = HoldfastError(f"something went wrong here; the log has it under {note.request_id.decode()}")
    await responses.send(responses.failure(told), send)
