"""Published OpenViking clients, installed once in `.venv-clients`, and the steps that tests take with them.

They are separate from the project's environment. Without a registry their tests are skipped.
"""

import fcntl
import http.server
import itertools
import os
import platform
import shutil
import string
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.testing.server import running_server

ROOT_KEY = "the-root-key"
CLIENTS = Path(__file__).parents[3] / ".venv-clients"
ACCOUNT_NUMBERS = itertools.count(1)
SETTINGS: dict[str, object] = {"fetch_urls": True, "allowed_fetch_hosts": "127.0.0.1"}
"""The settings of the server. The pages that it fetches are on the same machine."""
Run = Callable[[str], tuple[bool, Any]]
"""Takes a step with a client. Returns whether it succeeded, and its result or its error."""


def install_once(name: str, install: Callable[[Path], None]) -> Path:
    """Return the folder of a client. The first of several test processes installs it."""
    CLIENTS.mkdir(exist_ok=True)
    folder = CLIENTS / f"{name}-python{sys.version_info.major}.{sys.version_info.minor}"
    with (CLIENTS / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            (folder / "ready").touch()
    return folder


def pip(*arguments: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries=1", "--timeout=20", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        pytest.skip(f"cannot install {arguments[-1]}: {result.stderr.strip().splitlines()[-1]}")


@pytest.fixture(scope="session")
def sdk_python() -> Callable[[str], Path]:
    """Returns the Python interpreter of an environment with a version of the SDK."""

    def install(folder: Path, version: str) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        pip("--python", str(folder / "bin/python"), "install", "--quiet", f"openviking-sdk=={version}")

    return lambda version: install_once(f"sdk-{version}", lambda folder: install(folder, version)) / "bin/python"


@pytest.fixture(scope="session")
def ov_program() -> Path:
    """The program `ov`. Of its package only the program is installed."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the wheel of ov is for Linux on x86_64")

    def install(folder: Path) -> None:
        prefixes = ("openviking/bin/", "openviking.libs/")
        pip("download", "--quiet", "--no-deps", "--only-binary=:all:", f"--dest={folder}", "openviking==0.5.2")
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(folder, [name for name in opened.namelist() if name.startswith(prefixes)])
        wheel.unlink()
        (folder / "openviking/bin/ov").chmod(0o755)

    return install_once("ov-0.5.2", install) / "openviking/bin/ov"


@pytest.fixture(scope="session")
def client_environment() -> Callable[[Path], dict[str, str]]:
    """Returns the environment variables of a client whose settings are in a home folder."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OPENVIKING")}
    return lambda home: {**inherited, "NO_PROXY": "127.0.0.1", "HOME": str(home)}


@pytest.fixture(scope="module")
def api_key_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that identifies users by their keys."""
    with running_server(
        tmp_path_factory.mktemp("api_key"), log_level="error", root_api_key=ROOT_KEY, **SETTINGS
    ) as server:
        yield server.url


@pytest.fixture
def account() -> str:
    return f"acme-{next(ACCOUNT_NUMBERS)}"


@pytest.fixture
def keys(api_key_server: str, account: str) -> dict[str, str]:
    """The keys of ann, an admin of a new account, of alice, a user of it, and of the operator."""
    accounts = f"{api_key_server}/api/v1/admin/accounts"

    def create(url: str, body: dict[str, str]) -> str:
        response = httpx2.post(url, headers={"X-API-Key": ROOT_KEY}, json=body).raise_for_status()
        key: str = response.json()["result"]["user_key"]
        return key

    ann = create(accounts, {"account_id": account, "admin_user_id": "ann"})
    return {"root": ROOT_KEY, "ann": ann, "alice": create(f"{accounts}/{account}/users", {"user_id": "alice"})}


@pytest.fixture
def local_files(tmp_path: Path) -> Path:
    """A folder with files to add: guide.md, a folder docs, and the skill skills/review."""
    folder = tmp_path / "files"
    contents = {
        "guide.md": "# Guide\n\nThe blue safe opens with 4711.\n\n## Opening hours\n\nThe office opens at nine.\n",
        "docs/install.md": "# Install\n\nRun the installer of the turbine.\n",
        "docs/more/notes.txt": "The turbine needs oil every spring.\n",
        "skills/review/SKILL.md": "---\nname: review\ndescription: Reviews pull requests\n---\n# Review\n\nRead it.\n",
        "skills/review/checklist.txt": "tests, names, errors\n",
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


@pytest.fixture(scope="module")
def page_url() -> Iterator[str]:
    """The URL of a page with a text about a lighthouse."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = b"# Lighthouse\n\nThe lighthouse is lit at dusk.\n"
            self.send_response(200)
            self.send_header("Content-Type", "text/markdown")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/lighthouse.md"
        server.shutdown()


@pytest.fixture(scope="session")
def take_steps() -> Callable[..., None]:
    """Takes steps with a client, and checks each result.

    A step is a text for the client and what must be seen. The text may begin with `!`: the step must fail, and the
    error is checked. `$name` in a text stands for a value that an earlier step has kept. See `differences` for what
    must be seen.
    """

    def take(run: Run, steps: list[tuple[str, Any]], kept: Mapping[str, str]) -> None:
        values = dict(kept)
        for text, expected in steps:
            must_succeed = not text.startswith("!")
            filled = string.Template(text.removeprefix("!").strip()).safe_substitute(values)
            succeeded, seen = run(filled)
            assert succeeded == must_succeed, f"{filled}: {seen}"
            problems = list(differences(expected, seen, values))
            assert not problems, f"{filled}: {problems[0]}; the result is {seen!r}"

    return take


def differences(expected: Any, seen: Any, kept: dict[str, str]) -> Iterator[str]:
    """Yield how a result differs from what must be seen.

    `...` is any value, and a type any value of it. A dictionary names the fields that must be there. Each item of a
    list must be there, in any order; an empty list must be empty. A text must be equal; `/text/` must be contained, and
    `no /text/` must not.
    `$name` is any text, which is kept under the name, or the text kept before.
    """
    if expected is ...:
        return
    if isinstance(expected, dict):
        yield from _missing_fields(expected, seen, kept)
    elif isinstance(expected, list):
        yield from _missing_items(expected, seen, kept)
    elif isinstance(expected, str):
        yield from _text_differences(expected, seen, kept)
    elif isinstance(expected, type):
        if type(seen) is not expected:
            yield f"{seen!r} is no {expected.__name__}"
    elif expected != seen:
        yield f"{seen!r} is not {expected!r}"


def _missing_fields(expected: dict[str, Any], seen: Any, kept: dict[str, str]) -> Iterator[str]:
    if not isinstance(seen, dict):
        yield f"{seen!r} is no object"
        return
    for name, value in expected.items():
        if name not in seen:
            yield f"there is no {name}"
        else:
            yield from (f"{name}: {problem}" for problem in differences(value, seen[name], kept))


def _missing_items(expected: list[Any], seen: Any, kept: dict[str, str]) -> Iterator[str]:
    if isinstance(seen, str):  # each item says something about the text
        yield from (problem for part in expected for problem in differences(part, seen, kept))
    elif not isinstance(seen, list):
        yield f"{seen!r} is no list"
    elif not expected and seen:
        yield f"{seen!r} is not empty"
    else:
        for item in expected:
            if not any(not list(differences(item, other, kept)) for other in seen):
                yield f"no item is like {item!r}"


def _text_differences(expected: str, seen: Any, kept: dict[str, str]) -> Iterator[str]:
    if expected.startswith("$") and expected[1:].isidentifier():
        kept.setdefault(expected[1:], seen)
    text = string.Template(expected).safe_substitute(kept)
    if text.startswith(("/", "no /")) and text.endswith("/"):
        part = text[text.index("/") + 1 : -1]
        if (part in str(seen)) == text.startswith("no"):
            yield f"{text} does not hold for {seen!r}"
    elif text != seen:
        yield f"{seen!r} is not {text!r}"
