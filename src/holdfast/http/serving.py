"""The process: a socket, a loop, and an end that finishes what was accepted."""

import asyncio
import socket
import sys
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.client.opening import find_place, open_engine
from holdfast.config import Settings
from holdfast.errors import UnavailableError
from holdfast.http.app import build
from holdfast.http.auth import require_safe
from holdfast.http.service import Service

TIDY_SECONDS = 600.0
SWEEP_SECONDS = 1.0
OPTIONS: dict[str, Any] = {
    "http": "httptools",
    "access_log": False,
    "log_config": None,
    "server_header": False,
    "proxy_headers": False,
}
"""What a server of ours is run with, and whatever it is measured against."""


class PatientProtocol(HttpToolsProtocol):
    """Knows since when it waits for the rest of a request's head, and for its reader to take an answer."""

    waits_since: float | None = None
    stuck_since: float | None = None
    stuck_with = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.waits_since = self.loop.time()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.waits_since is None:
            self.waits_since = self.loop.time()

    def on_headers_complete(self) -> None:
        self.waits_since = None
        super().on_headers_complete()

    def is_stuck(self, now: float, patience: float) -> bool:
        left = self.transport.get_write_buffer_size()
        if not left or left != self.stuck_with:
            self.stuck_since, self.stuck_with = now, left
        half_sent = self.waits_since is not None and now - self.waits_since > patience
        return half_sent or (left > 0 and now - (self.stuck_since or now) > patience)


class Server(uvicorn.Server):
    """Tells its streams to end before it waits for them, and lets no slow client hold it."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._chores: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._chores = [asyncio.create_task(self._sweep()), asyncio.create_task(self._tidy())]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.hub.close()
        for chore in self._chores:
            chore.cancel()
        await super().shutdown(sockets)

    async def _sweep(self) -> None:
        patience = self._service.settings.slow_client_seconds
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
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
    config = uvicorn.Config(
        build(service),
        lifespan="on",
        timeout_graceful_shutdown=int(settings.shutdown_seconds),
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
