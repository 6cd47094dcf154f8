"""Starts programs by forking a process that has imported Holdfast. A new Python takes half a second for that.

A program runs as with `python`, in a process of its own. Its parent is the fork server.
"""

import atexit
import io
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import msgspec

PRELOADED = (
    "holdfast.engine.commits.commit_task",
    "holdfast.computing.summaries",
    "holdfast.http.server",
    "holdfast.providers.openai",
    "holdfast.store.drivers.postgres.database",
    "holdfast.store.drivers.sqlite.database",
    "holdfast.testing.faults.workload",
    "httpx2",
    "numpy",
    "rich.table",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
)
MAX_REQUEST_BYTES = 200_000


class Request(msgspec.Struct, frozen=True):
    """A program to start. Three files come with it: for its process id and exit code, its output and its errors."""

    program: list[str]
    args: list[str]
    env: dict[str, str]
    cwd: str
    start_new_session: bool


class ForkedProcess:
    """A running program, with the part of the interface of `subprocess.Popen` that tests need."""

    def __init__(
        self,
        program: Sequence[str],
        args: Sequence[str],
        *,
        env: Mapping[str, str] = os.environ,
        cwd: str = ".",
        stderr: int | None = None,
        start_new_session: bool = False,
    ) -> None:
        """Run a program: `-m` and a module, or a file; `-W error` may precede it.

        Without a file for `stderr`, the attribute `stderr` is a pipe, as `stdout` is.
        """
        output, program_output = os.pipe()
        errors, program_errors = (None, stderr) if stderr is not None else os.pipe()
        self._reports, reports = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = Request(list(program), list(args), dict(env), str(Path(cwd).resolve()), start_new_session)
        with reports:
            _fork_server().send(request, [reports.fileno(), program_output, program_errors])
        os.close(program_output)
        self.stdout = os.fdopen(output, "rb")
        if errors is not None:
            os.close(program_errors)
            self.stderr = os.fdopen(errors, "rb")
        self.pid = int(self._reports.recv(16))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._reports.settimeout(timeout)
            try:
                self.returncode = int(self._reports.recv(16))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("holdfast", timeout or 0) from None
            self._reports.close()
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait until the program ends, and return what it printed since the last read."""
        watchdog = threading.Timer(timeout, self.kill)
        watchdog.start()
        with self.stdout, self.stderr:
            # Errors fit into the buffer of their pipe.
            output, errors = self.stdout.read().decode(), self.stderr.read().decode()
        self.wait(timeout)
        watchdog.cancel()
        return output, errors

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that forks. It ends, with all programs, when its creator closes the connection or ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests, requests = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with requests:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "holdfast.testing.fork_server", str(requests.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[requests.fileno()],
            )

    def send(self, request: Request, files: list[int]) -> None:
        with self._lock:
            socket.send_fds(self._requests, [msgspec.json.encode(request)], files)

    def stop(self) -> None:
        self._requests.close()
        self._process.wait()


@cache
def _fork_server() -> ForkServer:
    server = ForkServer()
    atexit.register(server.stop)
    return server


class _Forker:
    """Forks for each request, and reports the exit code of each child."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._reports: dict[int, socket.socket] = {}
        # Python writes to `_wakeup` when a child exits, so that `_exits` becomes readable.
        self._exits, self._wakeup = socket.socketpair()
        self._exits.setblocking(False)
        self._wakeup.setblocking(False)

    def run(self) -> Request | None:
        """Return the request in each child, and None in the parent when there are no more requests."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the creator, and with it the requests
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakeup.fileno())
        with selectors.DefaultSelector() as selector:
            selector.register(self._requests, selectors.EVENT_READ)
            selector.register(self._exits, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._exits in ready:
                    self._report_exits()
                if self._requests in ready:
                    request, files, _, _ = socket.recv_fds(self._requests, MAX_REQUEST_BYTES, 3)
                    if not request:
                        self._kill_children()
                        return None
                    pid = os.fork()
                    if pid == 0:
                        selector.close()
                        program = msgspec.json.decode(request, type=Request)
                        self._become_program(program, files)
                        return program
                    self._reports[pid] = socket.socket(fileno=files[0])
                    for file in files[1:]:
                        os.close(file)

    def _report_exits(self) -> None:
        self._exits.recv(4096)
        for pid, report in list(self._reports.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                with suppress(OSError), report:  # the test may not wait for the end
                    report.send(b"%d" % os.waitstatus_to_exitcode(status))
                del self._reports[pid]

    def _kill_children(self) -> None:
        for pid in self._reports:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _become_program(self, request: Request, files: list[int]) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if request.start_new_session:
            os.setsid()
        os.write(files[0], b"%d" % os.getpid())
        for number, file in enumerate(files[1:], 1):
            os.dup2(file, number)
        for inherited in (self._requests, self._exits, self._wakeup, *self._reports.values()):
            inherited.detach()  # the numbers are used for other files from now on
        os.closerange(3, 1024)
        os.environ.clear()
        os.environ.update(request.env)
        os.chdir(request.cwd)


def _main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))
    for module in PRELOADED:
        import_module(module)
    with redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        import_module("holdfast.cli").main(["version"])  # any command imports more
    request = _Forker(requests).run()
    if request is not None:
        _run(request)


def _run(request: Request) -> None:
    sys.argv[1:] = request.args
    program = request.program
    if program[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        program = program[2:]
    match program:
        case ["-m", module]:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [file]:
            sys.argv[0] = file
            sys.path.insert(0, str(Path(file).parent))
            runpy.run_path(file, run_name="__main__")


if __name__ == "__main__":
    _main()
