"""The outermost layer of every request: its id, its duration, its log line, its metrics, and unexpected errors."""

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
from holdfast.store.database import Cancellation

_VALID_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class RequestRecord:
    """The facts about a request that go to the log and the metrics. The layers fill it in."""

    __slots__ = ("cancellation", "is_disconnected", "operation", "principal", "request_id", "started_at", "status")

    def __init__(self, request_id: bytes) -> None:
        self.started_at = time.perf_counter()
        self.request_id = request_id
        self.operation = "page"
        self.status = 0
        self.principal: Principal | None = None
        self.cancellation = Cancellation()
        self.is_disconnected = False

    def disconnect(self) -> None:
        """Stop the work of this request: its client has gone."""
        self.is_disconnected = True
        self.cancellation.is_requested = True

    def seconds(self) -> float:
        return time.perf_counter() - self.started_at


class RequestMiddleware:
    """Routes requests below `/api/` to the operations and all others to the pages."""

    def __init__(self, state: ServerState, operations: ASGIApp, pages: ASGIApp) -> None:
        self._state = state
        self._operations = operations
        self._pages = pages
        # A request id is a prefix of this server and a number of eight hexadecimal digits: cheaper than a new id.
        self._prefix = state.engine.ids.new("req")[:-8].encode()
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        app = self._operations if scope["path"].startswith("/api/") else self._pages
        record = scope["record"] = RequestRecord(self._request_id(scope))

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", record.request_id),
                    (b"x-process-time", b"%.6f" % record.seconds()),
                ]
            await send(message)

        try:
            await app(scope, receive, send_with_headers)
        except asyncio.CancelledError:  # the server stops, and the time for running requests is over
            if not record.status:
                await responses.send(responses.failure(_server_stopping()), send_with_headers)
        except Exception:  # noqa: BLE001 - any unexpected error is logged and answered
            self._state.log.write_exception("failed", request_id=record.request_id.decode(), operation=record.operation)
            if not record.status:
                await responses.send(responses.failure(_internal_error(record)), send_with_headers)
        finally:
            self._record_request(record)

    def _request_id(self, scope: Scope) -> bytes:
        """The id that the client sent, if it is valid, or a new one."""
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _VALID_REQUEST_ID.fullmatch(value):
                request_id: bytes = value
                return request_id
        return b"%b%08x" % (self._prefix, next(self._numbers))

    def _record_request(self, record: RequestRecord) -> None:
        """Update the metrics and write the request's log line."""
        seconds = record.seconds()
        self._state.metrics.record_request(record.operation, record.status, seconds)
        principal = record.principal
        self._state.log.write(
            "info",
            "request",
            request_id=record.request_id.decode(),
            operation=record.operation,
            status=record.status,
            ms=round(seconds * 1_000, 3),
            account=principal.account_id if principal else None,
            user=principal.user_id if principal else None,
        )


def _server_stopping() -> UnavailableError:
    return UnavailableError(
        "the server is stopping: the outcome of this call is unknown; retry it with the same idempotency key",
        service="http",
        reason="stopping",
    )


def _internal_error(record: RequestRecord) -> HoldfastError:
    return HoldfastError(f"internal error; the server's log has the details under {record.request_id.decode()}")
