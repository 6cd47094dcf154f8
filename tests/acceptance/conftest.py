"""Fixtures for the command line: each test has an account of its own in one shared place."""

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

numbers = itertools.count(1)


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def jsonl(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Done]


class Place(NamedTuple):
    option: str
    value: str


def run(monkeypatch: pytest.MonkeyPatch, *args: str, stdin: str | bytes = "") -> Done:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    given = stdin.encode() if isinstance(stdin, str) else stdin
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))
        patched.setattr(sys, "stdout", out)
        patched.setattr(sys, "stderr", err)
        code = main(args)
    return Done(code, out.buffer.getvalue().decode(), err.getvalue())


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command line in this process, wherever it says."""
    return lambda *args, stdin="": run(monkeypatch, *args, stdin=stdin)


@pytest.fixture(scope="module", params=["embedded", "remote"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("cli")
    if request.param == "embedded":
        yield Place("--path", str(folder))
        return
    with running_server(folder) as server:
        yield Place("--url", server.url)


@pytest.fixture
def account() -> str:
    return f"account-{next(numbers)}"


@pytest.fixture
def cli(place: Place, account: str, anywhere: Cli) -> Cli:
    """Runs a command line in this process, and expects nothing of it."""
    return lambda *args, stdin="": anywhere(*place, "--account", account, *args, stdin=stdin)


@pytest.fixture
def ok(cli: Cli) -> Cli:
    """Runs a command line that must succeed."""

    def succeed(*args: str, stdin: str | bytes = "") -> Done:
        done = cli(*args, stdin=stdin)
        assert done.code == 0, done
        return done

    return succeed


@pytest.fixture
def client(place: Place, account: str) -> Iterator[holdfast.Client]:
    with holdfast.connect(place.value, account=account) as opened:
        yield opened
