"""The transport to a server over HTTP."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holdfast import lazy
from holdfast.client.wire import NOT_EXECUTED_STATUSES, HttpCodec, Request, close_when_dropped, delay_with_retry_after
from holdfast.model.system import Backup
from holdfast.ops.table import Operation

if TYPE_CHECKING:
    from httpx2 import Response

R = TypeVar("R")


class HttpTransport:
    """Sends operations to a server over persistent connections. A failed request is retried if that is safe."""

    def __init__(self, codec: HttpCodec) -> None:
        self._httpx = lazy.httpx2
        self._codec = codec
        self._closed = False
        self._open()

    def call(self, op: Operation[R]) -> R:
        """Return the result of an operation. A page that the server ended early is completed with further requests."""
        result = self._request(op)
        while (following := op.following(result)) is not None:
            result = op.join(result, self._request(following))
        return result

    def _request(self, op: Operation[R]) -> R:
        codec = self._codec
        request = codec.request(op)
        codec.require_open(closed=self._closed)
        if self._process != os.getpid():
            self._open()  # after a fork: the parent still uses the old connections
        sent = False  # true once any attempt may have reached the server and been executed
        for delay in codec.retry_delays():
            try:
                response = self._send(request)
            except self._httpx.TransportError as error:
                sent = sent or not isinstance(error, self._httpx.ConnectError | self._httpx.ConnectTimeout)
                if delay is None or (sent and not request.is_retryable):
                    raise codec.unreachable_error(error, sent=sent) from error
                time.sleep(delay)
            else:
                if delay is None or not codec.should_retry(request, response.status_code):
                    return codec.result(op, response.status_code, response.content)
                sent = sent or response.status_code not in NOT_EXECUTED_STATUSES
                time.sleep(delay_with_retry_after(response.headers, delay))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def back_up(self, target: Path, *, overwrite: bool) -> Backup:  # noqa: ARG002
        raise self._codec.backup_error(target)

    def close(self) -> None:
        self._closed = True
        self._connections.close()

    def _open(self) -> None:
        self._process = os.getpid()
        self._connections = self._httpx.Client(**self._codec.httpx_options(self._httpx))
        close_when_dropped(self, self._connections)

    def _send(self, request: Request) -> "Response":
        return self._connections.request(request.verb, request.path, params=request.query, content=request.body)
