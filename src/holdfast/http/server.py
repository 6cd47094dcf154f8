"""The process: a socket, a loop, and an end that finishes what was accepted."""

import asyncio
import gc
import os
import socket
import sys
import threading
from typing import Any

import msgspec
import uvicorn

from holdfast.composition import find_target, open_engine
from holdfast.config import Settings
from holdfast.config_file import Source
from holdfast.engine.gate.ids import system_clock
from holdfast.errors import HoldfastError, InvalidArgumentError, UnavailableError
from holdfast.http.app import build
from holdfast.http.auth import require_safe
from holdfast.http.connections import PatientProtocol
from holdfast.http.server_state import ServerState
from holdfast.http.telemetry.logs import Log

TIDY_SECONDS = 600.0
SWEEP_SECONDS = 1.0
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
"""What the server is run with."""
NO_FILE = Source()


class Server(uvicorn.Server):
    """Tells its streams to end before it waits for them, and lets no slow client hold it."""

    def __init__(self, config: uvicorn.Config, state: ServerState) -> None:
        super().__init__(config)
        self._state = state
        self._tidying: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._sweeping = asyncio.create_task(self._sweep())
        if self._state.engine.workers is None:  # who works tidies up as well
            self._tidying = asyncio.create_task(self._tidy())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        limit = threading.Timer(self._state.settings.shutdown_seconds + 1, self._give_up)
        limit.daemon = True
        limit.start()
        self._state.hub.close()
        if self._tidying is not None:
            self._tidying.cancel()
        await super().shutdown(sockets)
        self._sweeping.cancel()
        if self.force_exit:
            self._give_up()
        limit.cancel()
        self._captured_signals.clear()  # who was asked to end and has done so does not die of it

    def _give_up(self) -> None:
        """End whatever still waits, perhaps for a database that somebody holds. Nobody was told that it is done."""
        try:
            self._state.log.write("error", "stopped before everything was done")
            self._state.log.flush()
        finally:
            os._exit(UNFINISHED)

    async def _sweep(self) -> None:
        patience = self._state.settings.slow_client_seconds
        while True:
            await asyncio.sleep(min(SWEEP_SECONDS, patience / 2))
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if not isinstance(connection, PatientProtocol):
                    continue
                # What has not arrived was not accepted: the end waits for it only as long as it goes on coming.
                given_up = self._state.hub.closing and connection.in_body and now - connection.heard_at > SWEEP_SECONDS
                if given_up or connection.is_stuck(now, patience):
                    connection.transport.abort()

    async def _tidy(self) -> None:
        while True:
            try:
                await self._state.executor.in_thread(self._state.engine.tidy)
            except HoldfastError:  # the database is away; the next time it may be back
                self._state.log.failure("tidying failed")
            await asyncio.sleep(TIDY_SECONDS)


def serve(settings: Settings, host: str, port: int, source: Source = NO_FILE) -> None:
    """Serve until told to stop. The address is printed once it can be connected to."""
    _log_source(Log(settings, system_clock), source)
    require_safe(settings, host)
    listener = _listen(host, port)
    target = find_target(settings.path, msgspec.structs.replace(settings, url=None))
    if target.url is not None:
        raise InvalidArgumentError("path", f"{target.url} is a server itself; name a folder, a file or a database")
    engine = open_engine(target, polls=True)
    state = ServerState(engine, settings)
    state.log.take_over()
    config = uvicorn.Config(
        build(state),
        lifespan="on",
        timeout_graceful_shutdown=settings.shutdown_seconds,  # type: ignore[arg-type]  # a part of a second is fine
        **{**OPTIONS, "http": PatientProtocol},
    )
    server = Server(config, state)
    # What is there now stays: the collector need not look through it at every turn, nor turn so often.
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{listener.getsockname()[1]}"
    sys.stdout.write(f"Holdfast serves {url} ({state.authenticator.mode} mode); Ctrl-C stops it\n")
    sys.stdout.flush()
    server.run(sockets=[listener])


def _log_source(log: Log, source: Source) -> None:
    if source.file is not None:
        log.write("info", "settings read", file=source.file, named=source.named, used=", ".join(source.used) or None)
    for warning in source.warnings:
        log.write("warning", "settings ignored", reason=warning)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port < 1 << 16:
        raise InvalidArgumentError("port", f"{port} is not one; use 1 to 65535, or 0 for a free one")
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
