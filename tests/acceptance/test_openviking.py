"""Published OpenViking clients work against Holdfast unchanged: the Python SDK and the program `ov`, as they come.

Each is installed once, apart from the project's environment, in `.venv-clients`; without a registry they are left out.
"""

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.testing.server import ServerProcess, running_server

SDK = "openviking-sdk==0.1.17"
PROGRAM = "openviking==0.5.2"
ROOT_KEY = "the-root-key"
CLIENTS = Path(__file__).parents[2] / ".venv-clients"

BEGINNING = """
import json, sys
from openviking_sdk import ContextPart, SyncHTTPClient, TextPart, errors

def told(action):
    try:
        return action()
    except errors.OpenVikingError as error:
        return [type(error).__name__, error.details]

who = json.loads(sys.argv[1])
client = SyncHTTPClient(**who)
client.initialize()
"""


def installed(name: str, install: Callable[[Path], None]) -> Path:
    """The folder of a client, installed by whoever comes first: tests run in several processes."""
    CLIENTS.mkdir(exist_ok=True)
    folder = CLIENTS / f"{name}-{sys.version_info.major}.{sys.version_info.minor}"
    with (CLIENTS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            (folder / "ready").touch()
    return folder


def pip(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "--timeout", "20", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"{arguments[-1]} cannot be had here: {done.stderr.strip().splitlines()[-1]}")


@pytest.fixture(scope="session")
def sdk() -> Path:
    """The Python that has the SDK."""

    def install(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        pip("--python", str(folder / "bin" / "python"), "install", "--quiet", SDK)

    return installed("sdk", install) / "bin" / "python"


@pytest.fixture(scope="session")
def program() -> Path:
    """The program `ov`, out of its wheel."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("ov is tried on Linux with x86_64")

    def install(folder: Path) -> None:
        pip("download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), PROGRAM)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as opened:
            wanted = [name for name in opened.namelist() if name.startswith(("openviking/bin/", "openviking.libs/"))]
            opened.extractall(folder, wanted)
        wheel.unlink()
        (folder / "openviking/bin/ov").chmod(0o755)

    return installed("ov", install) / "openviking/bin/ov"
