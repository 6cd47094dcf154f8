"""The types of the public API, as a type checker sees them in a program that uses the installed package."""

import re
from pathlib import Path

import mypy.api
import pytest

SYNC_CLIENT = """
from pathlib import Path
from typing import assert_type

import holdfast
from holdfast.model.archives import ArchiveInfo, Committed, SessionContext
from holdfast.model.messages import Appended
from holdfast.model.sessions import SessionInfo
from holdfast.model.tasks import Task

with holdfast.connect(Path("data"), account="acme", user="alice", role="admin") as client:
    assert_type(client, holdfast.Client)
    assert_type(client.create_session("chat", title="Deployment").session_id, str)
    assert_type(client.add_message("chat", "user", "Hello."), Appended)
    assert_type(client.get_session("chat", auto_create=True), SessionInfo)
    assert_type(client.get_messages("chat", q="hello").messages, list[holdfast.Message])
    assert_type(client.wait_for_task("task_1", seconds=1), Task)
    assert_type(client.admin.create_key("acme", "alice").key_id, str)
    assert_type(client.read("viking://session/chat/messages.jsonl"), str)
    session = client.session("chat")
    assert_type(session, holdfast.Session)
    assert_type(session.messages, list[holdfast.Message])
    assert_type(session.commit(keep_recent_count=2), Committed)
    assert_type(session.context(1_000), SessionContext)
    assert_type(session.archives, list[ArchiveInfo])
    assert_type(session.fork(3), holdfast.Session)

holdfast.connect(5)  # error: arg-type
holdfast.connect("data", token="secret")  # error: call-arg
client.add_message("chat", "robot", "Hello.")  # error: arg-type
client.get_session("chat").messages  # error: attr-defined
client.append_message("chat", "user", "Hello.")  # error: attr-defined
session.commit(keep_recent_count="2")  # error: arg-type
session.messages = []  # error: misc
"""

ASYNC_CLIENT = """
from typing import assert_type

import holdfast
from holdfast.model.archives import Committed
from holdfast.model.messages import Appended


async def use() -> None:
    async with holdfast.connect_async("data") as client:
        assert_type(client, holdfast.AsyncClient)
        assert_type(await client.add_message("chat", "user", "Hello."), Appended)
        session = client.session("chat")
        assert_type(session, holdfast.AsyncSession)
        assert_type(await session.messages, list[holdfast.Message])
        assert_type(await session.commit(), Committed)
        assert_type(await session.fork(), holdfast.AsyncSession)
        client.add_message("chat", "user", "Hello.")  # error: unused-coroutine
        client.get_session("chat").title  # error: attr-defined
        for message in session.messages:  # error: attr-defined
            print(message)
        await session.commit(2, 3)  # error: call-arg
    with holdfast.connect_async("data"):  # error: attr-defined
        pass
"""

PARTS_AND_SETTINGS = """
from typing import Any, assert_type

import holdfast
from holdfast import ContextPart, ImagePart, ProviderPart, TextPart, ToolPart

session = holdfast.connect(":memory:").session()
session.add_message("user", [TextPart("Hello."), ContextPart(uri="viking://resources/a.md", abstract="A")])
session.add_message("tool", [ToolPart(tool_id="c1", tool_name="search", input={"q": "x"}, output="y", success=True)])
session.add_message("assistant", [ProviderPart("anthropic", {"type": "thinking"}), {"type": "text", "text": "Hi."}])
session.add_messages([{"role": "user", "content": "Hello."}])
part = session.messages[0].parts[0]
if isinstance(part, TextPart):
    assert_type(part.text, str)
settings = holdfast.Settings(tool_output_threshold=500)
assert_type(settings.tool_output_threshold, int)
assert_type(settings.model_api_key, str | None)
assert_type(holdfast.Settings.load("holdfast.toml", log_level="error"), holdfast.Settings)
holdfast.connect(settings=settings)

TextPart(5)  # error: arg-type
TextPart("Hello.").txt  # error: attr-defined
ToolPart(tool_status="done")  # error: arg-type
session.add_message("user", [TextPart])  # error: list-item
holdfast.Settings(log_level="loud")  # error: arg-type
holdfast.Settings(treshold=1)  # error: call-arg
settings.path = "elsewhere"  # error: misc
"""

ERRORS = """
from typing import Any, assert_type

import holdfast
from holdfast import errors

try:
    holdfast.connect(":memory:").get_session("chat")
except errors.NotFoundError as error:
    assert_type(error.code, str)
    assert_type(error.message, str)
    assert_type(error.details, dict[str, Any])
    assert_type(error.to_dict(), dict[str, Any])
except errors.HoldfastError as error:
    assert_type(error.status, int)
    error.reason  # error: attr-defined
except errors.TimeoutError:  # error: attr-defined
    pass
"""

EXCHANGE = """
from pathlib import Path
from typing import assert_type

import holdfast
from holdfast.exchange import (
    ExportedSession, ExportReport, FORMATS, ImportedSession, ImportReport, ProgressCallback,
    export_sessions, import_path,
)


def show(done: int, total: int, session_id: str) -> None:
    print(done, total, session_id)


progress: ProgressCallback = show
client = holdfast.connect(":memory:")
assert_type(export_sessions(client, Path("exported"), ["chat"], progress), ExportReport)
report = import_path(client, "exported", dry_run=True, progress=show)
assert_type(report, ImportReport)
assert_type(report.failed, list[ImportedSession])
sessions: list[ExportedSession] = export_sessions(client, "exported").sessions

export_sessions(client, "exported", progress=len)  # error: arg-type
export_sessions("data", "exported")  # error: arg-type
import_path(client)  # error: call-arg
import_path(client, None, text=b"[]")  # error: arg-type
report.error  # error: attr-defined
"""

CONTRACTS = """
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.testing.contract import ClientCommitContract, ClientContract, StoreContract


class TestMyClient(ClientContract):
    @pytest.fixture
    def connect_as(self) -> Callable[..., holdfast.Client]:
        def connect(account: str, user: str, role: Any = "root") -> holdfast.Client:
            return holdfast.connect(":memory:", account=account, user=user, role=role)

        return connect

    @pytest.fixture
    def client(self, connect_as: Callable[..., holdfast.Client]) -> holdfast.Client:
        return connect_as("acme", "alice")


class TestMyCommits(ClientCommitContract):
    pass


class TestMyDatabase(StoreContract):
    pass


from holdfast.testing.contract import UnknownContract  # error: attr-defined
"""

PROGRAMS = {
    "sync_client": SYNC_CLIENT,
    "async_client": ASYNC_CLIENT,
    "parts_and_settings": PARTS_AND_SETTINGS,
    "errors": ERRORS,
    "exchange": EXCHANGE,
    "contracts": CONTRACTS,
}
EXPECTED_ERROR = re.compile(r"# error: ([\w-]+)$")
REPORTED_ERROR = re.compile(r"^(.+)\.py:(\d+): error: .*\[([\w-]+)\]$", re.MULTILINE)


def expected_errors() -> set[tuple[str, int, str]]:
    return {
        (name, number, match[1])
        for name, code in PROGRAMS.items()
        for number, line in enumerate(code.splitlines(), 1)
        if (match := EXPECTED_ERROR.search(line))
    }


def test_correct_programs_pass_and_each_mistake_is_reported_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """One strict run of mypy for all programs, outside of the project and without its configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MYPYPATH", raising=False)
    for name, code in PROGRAMS.items():
        Path(f"use_{name}.py").write_text(code, "utf-8")
    options = ["--config-file=", "--strict", "--no-error-summary", f"--cache-dir={pytestconfig.cache.mkdir('mypy')}"]
    output, failure, _ = mypy.api.run([*options, *(f"use_{name}.py" for name in PROGRAMS)])
    reported = {(file.removeprefix("use_"), int(line), code) for file, line, code in REPORTED_ERROR.findall(output)}
    assert (failure, reported) == ("", expected_errors()), output
