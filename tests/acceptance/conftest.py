"""Fixtures that run the command line. A module shares a database or server; each test has its own account."""

import io
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import holdfast
from holdfast.cli import main
from holdfast.testing.server import running_server

account_numbers = itertools.count(1)


class CliResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def jsonl(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., CliResult]


class CliTarget(NamedTuple):
    option: str
    value: str


def run(monkeypatch: pytest.MonkeyPatch, *args: str, stdin: str | bytes = "") -> CliResult:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    content = stdin.encode() if isinstance(stdin, str) else stdin
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
        patched.setattr(sys, "stdout", out)
        patched.setattr(sys, "stderr", err)
        code = main(args)
    return CliResult(code, out.buffer.getvalue().decode(), err.getvalue())


@pytest.fixture
def run_cli(monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command line in this process."""
    return lambda *args, stdin="": run(monkeypatch, *args, stdin=stdin)


@pytest.fixture(scope="module", params=["embedded", "remote"])
def cli_target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliTarget]:
    folder = tmp_path_factory.mktemp("cli")
    if request.param == "embedded":
        yield CliTarget("--path", str(folder))
        return
    with running_server(folder) as server:
        yield CliTarget("--url", server.url)


@pytest.fixture
def account() -> str:
    return f"account-{next(account_numbers)}"


@pytest.fixture
def cli(cli_target: CliTarget, account: str, run_cli: Cli) -> Cli:
    """Runs a command line in this process, with the options for the test's target and account."""
    return lambda *args, stdin="": run_cli(*cli_target, "--account", account, *args, stdin=stdin)


@pytest.fixture
def cli_ok(cli: Cli) -> Cli:
    """Like `cli`, but the exit code must be 0."""

    def run_successfully(*args: str, stdin: str | bytes = "") -> CliResult:
        result = cli(*args, stdin=stdin)
        assert result.code == 0, result
        return result

    return run_successfully


@pytest.fixture
def client(cli_target: CliTarget, account: str) -> Iterator[holdfast.Client]:
    with holdfast.connect(cli_target.value, account=account) as opened:
        yield opened
