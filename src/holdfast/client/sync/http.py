"""Operations to a server and back. `ahttp.py` is its asynchronous twin."""

import os
import time
from typing import TYPE_CHECKING, TypeVar

from holdfast import lazy
from holdfast.client.wire import NOTHING_DONE, HttpCodec, Request, retry_after_seconds
from holdfast.ops.table import Operation

if TYPE_CHECKING:
    from httpx2 import Response

R = TypeVar("R")


class HttpTransport:
    """To a server, over connections that are kept open. What failed is asked again where that does no harm."""

    def __init__(self, codec: HttpCodec) -> None:
        self._httpx = lazy.httpx2
        self._codec = codec
        self._closed = False
        self._open()

    def call(self, op: Operation[R]) -> R:
        codec = self._codec
        request = codec.request(op)
        codec.require_open(closed=self._closed)
        if self._process != os.getpid():
            self._open()  # a fork: the connections are the parent's, who still uses them
        sent = False  # at any attempt: what was sent once may have been done
        for wait in codec.waits():
            try:
                response = self._send(request)
            except self._httpx.TransportError as error:
                sent = sent or not isinstance(error, self._httpx.ConnectError | self._httpx.ConnectTimeout)
                if wait is None or (sent and not request.retriable):
                    raise codec.unreachable(error, sent=sent) from error
                time.sleep(wait)
            else:
                if wait is None or not codec.asks_again(request, response.status_code):
                    return codec.result(op, response.status_code, response.content)
                sent = sent or response.status_code not in NOTHING_DONE
                time.sleep(retry_after_seconds(response.headers, wait))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def close(self) -> None:
        self._closed = True
        self._connections.close()

    def _open(self) -> None:
        self._process = os.getpid()
        self._connections = self._httpx.Client(**self._codec.options(self._httpx))

    def _send(self, request: Request) -> "Response":
        return self._connections.request(request.verb, request.path, params=request.query, content=request.body)
