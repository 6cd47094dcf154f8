"""A shallow clone of a Git repository, by the program git, with limits and without anything that runs."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.config import Settings, child_environment
from holdfast.engine.resources.fetching.addresses import resolve
from holdfast.errors import FailedPreconditionError, TooLargeError, short_repr

POLL_SECONDS = 0.1
_OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "credential.helper=",
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.http.allow=always",
    "http.followRedirects=false",
    "submodule.recurse=false",
    "transfer.fsckObjects=true",
)


@contextmanager
def cloned(url: str, settings: Settings) -> Iterator[str]:
    """Clone the newest state of a repository into a temporary folder, which exists until the context ends."""
    program = shutil.which("git")
    if program is None:
        raise FailedPreconditionError("the program git is missing on the server, so it cannot fetch repositories")
    destination = resolve(url, settings)
    with tempfile.TemporaryDirectory(prefix="holdfast-git-") as folder:
        target = os.path.join(folder, "clone")  # noqa: PTH118 - kept as a string
        options = [option for each in _OPTIONS for option in ("-c", each)]
        address = f"[{destination.address}]" if ":" in destination.address else destination.address
        pinned = f"http.curloptResolve={destination.host}:{destination.port}:{address}"
        command = [
            *(program, *options, "-c", pinned, "clone", "--quiet", "--depth=1", "--single-branch", "--no-tags"),
            *("--no-recurse-submodules", "--template=", "--", url, target),
        ]
        _run(command, folder, settings)
        shutil.rmtree(os.path.join(target, ".git"), ignore_errors=True)  # noqa: PTH118
        yield target


def _run(command: list[str], folder: str, settings: Settings) -> None:
    environment = {
        **{name: value for name, value in child_environment().items() if not name.startswith("PYTHON")},
        "HOME": folder,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - no shell, and the URL was checked
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            _wait(process, folder, settings)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode:
            errors.seek(0)
            lines = errors.read(2_000).decode(errors="replace").strip().splitlines()
            raise FailedPreconditionError(f"git cannot clone the repository: {short_repr(lines[-1] if lines else '')}")


def _wait(process: "subprocess.Popen[bytes]", folder: str, settings: Settings) -> None:
    deadline = time.monotonic() + settings.fetch_seconds
    while process.poll() is None:
        if time.monotonic() > deadline:
            raise FailedPreconditionError(f"git did not finish within {settings.fetch_seconds:g} s (fetch_seconds)")
        if _size_of(folder) > settings.max_fetch_bytes:
            raise TooLargeError(
                f"the repository has more than {settings.max_fetch_bytes:,} bytes; the limit is max_fetch_bytes"
            )
        time.sleep(POLL_SECONDS)


def _size_of(folder: str) -> int:
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += Path(path, name).lstat().st_size
    return size
