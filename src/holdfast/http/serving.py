"""The process: a socket, a loop, and an end that finishes what was accepted."""

import asyncio
import os
import socket
import sys
import threading
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from holdfast.client.opening import find_place, open_engine
from holdfast.config import Settings
from holdfast.errors import HoldfastError, InvalidArgumentError, TooLargeError, UnavailableError
from holdfast.http import answers
from holdfast.http.app import build
from holdfast.http.auth import require_safe
from holdfast.http.service import Service

TIDY_SECONDS = 600.0
SWEEP_SECONDS = 1.0
MOST_HEAD = 64 * 1024
"""How many bytes the request line and the headers may have."""
UNFINISHED = 1
"""The exit code of a server that left something undone."""
OPTIONS: dict[str, Any] = {
    "http": "httptools",
    "ws": "none",
    "access_log": False,
    "log_config": None,
    "server_header": False,
    "proxy_headers": False,
}
"""What a server of ours is run with, and whatever it is measured against."""


class HeadTooLargeError(TooLargeError):
    status = 431


class PatientProtocol(HttpToolsProtocol):
    """Knows since when it waits for its client: for a request's head, for a body nobody reads, to take an answer."""

    waits_since: float | None = None
    head_size = 0
    in_body = False
    stuck_since: float | None = None
    stuck_with = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.waits_since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        if self.waits_since is None and self.cycle.response_complete:
            # It may be blank lines, or more of a body that was answered long ago: both would keep it open for ever.
            self.waits_since = self.loop.time()
        began_in_body = self.in_body
        super().data_received(data)
        if self.waits_since is not None and not began_in_body:
            self.head_size += len(data)
            if self.head_size > MOST_HEAD and not self.transport.is_closing():
                self._refuse(HeadTooLargeError(f"the head has more than {MOST_HEAD} bytes; send less", limit=MOST_HEAD))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.waits_since is None:
            self.waits_since = self.loop.time()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.waits_since, self.head_size, self.in_body = None, 0, True

    def on_message_complete(self) -> None:
        self.in_body = False
        if self.cycle.response_complete:
            self.waits_since = self.loop.time()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(InvalidArgumentError("request", f"{msg.rstrip('.')}; send HTTP/1.1"))

    def is_stuck(self, now: float, patience: float) -> bool:
        left = self.transport.get_write_buffer_size()
        if not left or left != self.stuck_with:
            self.stuck_since, self.stuck_with = now, left
        half_sent = self.waits_since is not None and now - self.waits_since > patience
        return half_sent or (left > 0 and now - (self.stuck_since or now) > patience)

    def _refuse(self, error: HoldfastError) -> None:
        """Answer what never became a request."""
        answer = answers.failure(error)
        told = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(answer.body)
        self.transport.write(STATUS_LINE[answer.status] + told + answer.body)
        self.transport.close()


class Server(uvicorn.Server):
    """Tells its streams to end before it waits for them, and lets no slow client hold it."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._sweeping = asyncio.create_task(self._sweep())
        self._tidying = asyncio.create_task(self._tidy())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        limit = threading.Timer(self._service.settings.shutdown_seconds + 1, self._give_up)
        limit.daemon = True
        limit.start()
        self._service.hub.close()
        self._tidying.cancel()
        await super().shutdown(sockets)
        self._sweeping.cancel()
        if self.force_exit:
            self._give_up()
        limit.cancel()
        self._captured_signals.clear()  # who was asked to end and has done so does not die of it

    def _give_up(self) -> None:
        """End whatever still waits, perhaps for a database that somebody holds. Nobody was told that it is done."""
        self._service.log.write("error", "stopped before everything was done")
        self._service.log.flush()
        os._exit(UNFINISHED)

    async def _sweep(self) -> None:
        patience = self._service.settings.slow_client_seconds
        while True:
            await asyncio.sleep(min(SWEEP_SECONDS, patience / 2))
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, PatientProtocol) and connection.is_stuck(now, patience):
                    connection.transport.abort()

    async def _tidy(self) -> None:
        while True:
            await self._service.bridge.in_thread(self._service.engine.tidy)
            await asyncio.sleep(TIDY_SECONDS)


def serve(settings: Settings, host: str, port: int) -> None:
    """Serve until told to stop. The address is printed once it answers."""
    require_safe(settings, host)
    listener = _listen(host, port)
    engine = open_engine(find_place(settings.path, None, None, None, None, settings))
    service = Service(engine, settings)
    service.log.take_over()
    config = uvicorn.Config(
        build(service),
        lifespan="on",
        timeout_graceful_shutdown=settings.shutdown_seconds,  # type: ignore[arg-type]  # a part of a second is fine
        **{**OPTIONS, "http": PatientProtocol},
    )
    server = Server(config, service)
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{listener.getsockname()[1]}"
    sys.stdout.write(f"Holdfast serves {url} ({service.gatekeeper.mode} mode); Ctrl-C stops it\n")
    sys.stdout.flush()
    server.run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise UnavailableError(
            f"cannot listen on {host}:{port}: {error.strerror}; name another --port, or 0 for a free one",
            service="http",
            reason=type(error).__name__,
        ) from None
    return listener
