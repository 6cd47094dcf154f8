"""A real server process for tests, on a free local port."""

import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast.testing.fork_server import ForkedProcess

TIMEOUT_SECONDS = 30.0


class ServerProcess:
    """`holdfast serve` on `target`. `settings` are passed as environment variables.

    `program` are the arguments of Python for a program that has the command `serve`. `log_file` is the descriptor of
    its standard error; by default a file that `log` reads.
    """

    def __init__(
        self,
        target: str,
        *,
        port: object = 0,
        program: Any = ("-m", "holdfast"),
        log_file: Any = None,
        **settings: object,
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process ends
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        environment |= {f"HOLDFAST_{name.upper()}": str(value) for name, value in settings.items()}
        self.process = ForkedProcess(
            program,
            ["serve", "--path", target, "--host", "127.0.0.1", "--port", str(port)],
            env=environment,
            cwd=tempfile.gettempdir(),
            stderr=self._errors.fileno() if log_file is None else log_file,
        )
        self.url = self._read_url()

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def log(self) -> str:
        """Return what the server has written to standard error so far."""
        return self._final_log if self._errors.closed else os.pread(self._errors.fileno(), 100_000_000, 0).decode()

    def stop(self) -> int:
        """Shut the server down gracefully with SIGTERM, and return its exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        return self._wait_for_exit()

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        with suppress(ProcessLookupError):
            self.process.kill()
        self._wait_for_exit()

    def _wait_for_exit(self) -> int:
        try:
            code = self.process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(TIMEOUT_SECONDS)
            raise AssertionError(f"the server did not exit: {self.log()[-2000:]}") from None
        self.process.stdout.close()
        if not self._errors.closed:
            self._final_log = self.log()
            self._errors.close()
        return code

    def _read_url(self) -> str:
        watchdog = threading.Timer(TIMEOUT_SECONDS, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline().decode()
        watchdog.cancel()
        address = re.search(r"https?://\S+:\d+", line)
        if address is None:
            self.kill()
            raise AssertionError(f"the server did not start: {line!r} {self.log()[-2000:]}")
        return address[0]


@contextmanager
def running_server(
    target: str | Path,
    *,
    port: object = 0,
    program: Any = ("-m", "holdfast"),
    log_file: Any = None,
    **settings: object,
) -> Iterator[ServerProcess]:
    """Start a server, and kill it when the block ends."""
    server = ServerProcess(str(target), port=port, program=program, log_file=log_file, **settings)
    try:
        yield server
    finally:
        server.kill()
