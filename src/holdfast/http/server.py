"""The server process: listen, serve, and finish all accepted requests on shutdown."""

import asyncio
import ctypes
import gc
import os
import socket
import sys
import threading
from contextlib import suppress
from typing import Any

import msgspec
import uvicorn

from holdfast.composition import open_engine, resolve_target
from holdfast.config import Settings
from holdfast.config_file import SettingsSource
from holdfast.engine.gate.ids import system_clock
from holdfast.errors import HoldfastError, InvalidArgumentError, UnavailableError
from holdfast.http.app import build_app
from holdfast.http.auth import require_secure_binding
from holdfast.http.connections import TimedProtocol
from holdfast.http.server_state import ServerState
from holdfast.http.telemetry.logs import Log

CLEANUP_INTERVAL_SECONDS = 600.0
CONNECTION_CHECK_SECONDS = 1.0
M_MMAP_THRESHOLD = -3
"""The number of this option in glibc."""
LARGE_BLOCK_BYTES = 512 * 1024
EXIT_UNFINISHED = 1
"""The exit code of a server that stopped before all requests were finished."""
OPTIONS: dict[str, Any] = {
    "http": "httptools",
    "ws": "none",
    "access_log": False,
    "log_config": None,
    "server_header": False,
    "proxy_headers": False,
}
"""The options of uvicorn."""
NO_FILE = SettingsSource()


class Server(uvicorn.Server):
    """On shutdown it ends the event streams before it waits for requests. It closes the connections of slow clients."""

    def __init__(self, config: uvicorn.Config, state: ServerState) -> None:
        super().__init__(config)
        self._state = state
        self._cleanup: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._connection_check = asyncio.create_task(self._close_slow_connections())
        if self._state.engine.workers is None:  # workers do this as well
            self._cleanup = asyncio.create_task(self._delete_expired())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        deadline = threading.Timer(self._state.settings.shutdown_seconds + 1, self._exit_unfinished)
        deadline.daemon = True
        deadline.start()
        self._state.notifier.close()
        if self._cleanup is not None:
            self._cleanup.cancel()
        await super().shutdown(sockets)
        self._connection_check.cancel()
        if self.force_exit:
            self._exit_unfinished()
        deadline.cancel()
        self._captured_signals.clear()  # uvicorn would raise the signal again, and the exit code would not be 0

    def _exit_unfinished(self) -> None:
        """Exit at once, although requests still wait, for example for a locked database. They got no response."""
        try:
            self._state.log.write("error", "stopped before all requests were finished")
            self._state.log.flush()
        finally:
            os._exit(EXIT_UNFINISHED)

    async def _close_slow_connections(self) -> None:
        timeout = self._state.settings.slow_client_seconds
        while True:
            await asyncio.sleep(min(CONNECTION_CHECK_SECONDS, timeout / 2))
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if not isinstance(connection, TimedProtocol):
                    continue
                # A request is accepted once its body is complete. Shutdown waits for a body only while data comes in.
                is_stalled = (
                    self._state.notifier.is_closing
                    and connection.is_receiving_body
                    and now - connection.last_received_at > CONNECTION_CHECK_SECONDS
                )
                if is_stalled or connection.has_timed_out(now, timeout):
                    connection.transport.abort()

    async def _delete_expired(self) -> None:
        while True:
            try:
                await self._state.executor.in_thread(self._state.engine.delete_expired)
            except HoldfastError:  # the database is unavailable; the next attempt may succeed
                self._state.log.write_exception("deleting expired rows failed")
            await asyncio.sleep(CLEANUP_INTERVAL_SECONDS)


def serve(settings: Settings, host: str, port: int, source: SettingsSource = NO_FILE) -> None:
    """Serve until a signal stops the process. The URL is printed once it accepts connections."""
    log = Log(settings, system_clock)
    _log_source(log, source)
    require_secure_binding(settings, host)
    listener = _listen(host, port)
    target = resolve_target(settings.path, msgspec.structs.replace(settings, url=None))
    if target.url is not None:
        raise InvalidArgumentError("path", f"{target.url} is a server; use a folder, a file or a database URL")
    engine = open_engine(target, polls=True)
    state = ServerState(engine, settings, log)
    log.capture_library_logs()
    config = uvicorn.Config(
        build_app(state),
        lifespan="on",
        timeout_graceful_shutdown=settings.shutdown_seconds,  # type: ignore[arg-type]  # a float works, too
        **{**OPTIONS, "http": TimedProtocol},
    )
    server = Server(config, state)
    # The objects that exist now are never freed. The collector need not scan them, and may run less often.
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)
    _return_large_blocks()
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{listener.getsockname()[1]}"
    sys.stdout.write(f"Holdfast serves {url} ({state.authenticator.mode} mode); Ctrl-C stops it\n")
    sys.stdout.flush()
    server.run(sockets=[listener])


def _return_large_blocks() -> None:
    """Let the C library return every large block of memory to the system when it is freed.

    By default, glibc keeps blocks of up to 32 MB for reuse, in an arena per thread. A few large requests then occupy
    hundreds of megabytes for ever.
    """
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)


def _log_source(log: Log, source: SettingsSource) -> None:
    if source.file is not None:
        log.write("info", "settings read", file=source.file, named=source.named, used=", ".join(source.used) or None)
    for warning in source.warnings:
        log.write("warning", "settings ignored", reason=warning)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port < 1 << 16:
        raise InvalidArgumentError("port", f"{port} is not a port number; use 1 to 65535, or 0 for a free port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted connections inherit this option
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise UnavailableError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another --port, or 0 for a free one",
            service="http",
            reason=type(error).__name__,
        ) from None
    return listener
