"""A real server process for tests, on a free port of this machine, gone at the end."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 30.0


class ServerProcess:
    """`holdfast serve` on what `target` names, with settings as they are in the environment."""

    def __init__(self, target: str, *, port: object = 0, **settings: object) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        environment |= {f"HOLDFAST_{name.upper()}": str(value) for name, value in settings.items()}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "serve", "--path", target, "--host", "127.0.0.1", "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            cwd=tempfile.gettempdir(),
            text=True,
        )
        self.url = self._told_url()

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def log(self) -> str:
        """What it has written to standard error so far."""
        return self._told if self._errors.closed else os.pread(self._errors.fileno(), 100_000_000, 0).decode()

    def stop(self) -> int:
        """Ask it to finish what it accepted and end; its exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        return self._gone()

    def kill(self) -> None:
        """As a power cut: it gets no chance to do anything more."""
        with suppress(ProcessLookupError):
            self.process.kill()
        self._gone()

    def _gone(self) -> int:
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE)
            raise AssertionError(f"the server did not end: {self.log()[-2000:]}") from None
        if self.process.stdout:
            self.process.stdout.close()
        if not self._errors.closed:
            self._told = self.log()
            self._errors.close()
        return code

    def _told_url(self) -> str:
        assert self.process.stdout
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        line = self.process.stdout.readline()
        late.cancel()
        found = re.search(r"https?://\S+:\d+", line)
        if found is None:
            self.kill()
            raise AssertionError(f"the server did not start: {line!r} {self.log()[-2000:]}")
        return found[0]


@contextmanager
def running_server(target: str | Path, *, port: object = 0, **settings: object) -> Iterator[ServerProcess]:
    server = ServerProcess(str(target), port=port, **settings)
    try:
        yield server
    finally:
        server.kill()
