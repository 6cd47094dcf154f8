"""The end of a connection to a site that sends its answer a byte at a time, so that no single read takes too long."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

Trace = Callable[[str, dict[str, Any]], None]
"""What the HTTP library calls with its events."""
CONNECTED = ("connect_tcp.complete", "start_tls.complete")


@contextmanager
def connection_ended_after(seconds: float) -> Iterator[Trace]:
    """Shut the connection of a request down after a time. What reads from it then gets an error."""
    streams: list[Any] = []
    has_ended = threading.Event()

    def end() -> None:
        has_ended.set()
        _shut_down(streams)

    def trace(event: str, info: dict[str, Any]) -> None:
        if event.endswith(CONNECTED):
            streams.append(info["return_value"])
            if has_ended.is_set():
                _shut_down(streams)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield trace
    finally:
        timer.cancel()


def _shut_down(streams: list[Any]) -> None:
    for stream in streams[-1:]:  # TLS replaces the stream of the connection
        with suppress(OSError):
            stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
