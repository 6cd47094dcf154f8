"""The contents of a fixture database, by the schema that introduced them.

Only the client is used, so that the source of every earlier version can run this module too.
"""

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import holdfast
from holdfast import Client, Settings

OWNER = ("default", "default")
"""The account and user of most sessions."""
OWNERS_BY_SCHEMA = {1: [OWNER, ("acme", "ada"), ("acme", "bob")], 2: [("globex", "gus"), ("globex", "gwen")]}
DEFAULTS = {
    "worker_threads": 0,
    "tool_output_threshold": 1_000,
    "tool_output_preview": 200,
    "idempotency_hours": 1_000_000,  # a fixture is older than what is usually kept
    "task_retention_hours": 1_000_000,
}
MODEL: dict[str, Any] = {
    "model_provider": "openai",
    "model_name": "fake",
    "model_api_key": "none",
    "model_input_tokens": 2_300,
}
RETRY_SECONDS = 60.0
TIMEOUT_SECONDS = 60.0
TIDES = " ".join(f"the tide of day {day} came in at {day % 24} and left {day * 7} limpets" for day in range(40))
"""About 490 tokens: a model with the settings above reads a few such messages at a time."""
KILLED_MESSAGES = [
    {"role": ("user", "assistant")[place % 2], "content": f"Report {place} of the harbour: {TIDES}"}
    for place in range(1, 9)
]
ERASED_MESSAGES = 1_200
"""More than a deletion removes at once."""
SPECIAL_TEXT = (
    "Gr\u00fc\u00dfe \u4f60\u597d \u0645\u0631\u062d\u0628\u0627 \U0001f469\u200d\U0001f680 e\u0301"
    " 'quoted' \"twice\" \\ {x} %s\n\n```sql\nDROP TABLE t;\n```"
)
LOG = "\n".join(f"{line:04d} compiled module_{line % 7} without warnings" for line in range(60))

KEYED_MESSAGE: dict[str, Any] = {
    "role": "user",
    "content": "Order 12 copper pipes, once.",
    "idempotency_key": "order-12",
}
KEYED_BATCH: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "Is it ordered?"},
        {"role": "assistant", "parts": [{"type": "text", "text": "Yes."}, {"type": "tool", "tool_id": "call-o"}]},
    ],
    "idempotency_key": "batch-12",
}
MESSAGE_WITH_ID: dict[str, Any] = {"role": "assistant", "content": "It arrives on Friday.", "id": "answer-on-delivery"}


class FixtureTarget(NamedTuple):
    """A database to fill, and the number of its schema."""

    database: str
    schema: int

    def connect(self, account: str = OWNER[0], user: str = OWNER[1], **settings: Any) -> Client:
        """Open a client, by default without workers. A version leaves out the settings that it does not know."""
        values = {**DEFAULTS, **settings}
        known = {name: value for name, value in values.items() if name in Settings.__struct_fields__}
        return holdfast.connect(self.database, account=account, user=user, settings=Settings(**known))

    @property
    def owners(self) -> list[tuple[str, str]]:
        return [owner for schema, owners in OWNERS_BY_SCHEMA.items() if schema <= self.schema for owner in owners]


def repeat_appends(client: Client) -> list[Any]:
    """Call the appends of session `keyed` that are safe to repeat, and return their results."""
    return [
        client.add_message("keyed", **KEYED_MESSAGE),
        client.batch_add_messages("keyed", **KEYED_BATCH),
        client.add_message("keyed", **MESSAGE_WITH_ID),
    ]


def fill(target: FixtureTarget) -> None:
    for schema, fill_part in PARTS.items():
        if schema <= target.schema:
            fill_part(target)


def _fill_sessions(target: FixtureTarget) -> None:
    with target.connect() as client:
        _add_shapes(client)
        client.batch_add_messages("long", [_numbered(number) for number in range(1, 81)])
        client.create_session(
            "empty", title="Nothing yet", metadata={"nested": {"list": [1, None, "\u00e9"]}, "n": 1.5}
        )
        repeat_appends(client)
        client.add_message("stored", "user", "Keep this, and accept nothing more.")
        client.update_session("stored", state="archived", title="Stored away", metadata={"by": "operator"})
        _add_forks(client)
    for user in ("ada", "bob"):
        with target.connect("acme", user) as client:
            client.add_message("shared-name", "user", f"The copper pipes of {user} are here.")
            client.add_message("shared-name", "assistant", "Noted.", peer_id="warehouse")


def _add_shapes(client: Client) -> None:
    """Messages of every role and part, tool calls apart from their results, and two equal large outputs."""
    client.create_session("shapes", title="All shapes \U0001f41a", metadata={"project": "harbour", "open": True})
    client.add_message("shapes", "system", "You are the harbour master. Always answer in metric units.")
    client.add_message(
        "shapes",
        "user",
        SPECIAL_TEXT,
    )
    client.add_message(
        "shapes", "assistant", parts=[{"type": "text", "text": "I look it up."}, _call("call-1", "read_log", {"n": 60})]
    )
    client.add_message("shapes", "tool", parts=[_result("call-1", "read_log", LOG)])
    client.add_message(
        "shapes",
        "assistant",
        parts=[{**_call("call-2", "build", {"target": "all"}), **_done({"ok": True, "warnings": []})}],
    )
    client.add_message("shapes", "tool", parts=[{**_result("call-3", "read_log", LOG), "duration_ms": 12.5}])
    client.add_message("shapes", "tool", parts=[{**_result("call-4", "deploy", "refused"), "tool_status": "error"}])
    client.add_message(
        "shapes",
        "user",
        parts=[
            {"type": "image", "url": "file:///harbour.png", "description": "The harbour at low tide"},
            {"type": "context", "uri": "viking://resources/tides", "context_type": "resource", "abstract": "Tides"},
            {"type": "text", "text": "What is copper worth?"},
        ],
        turn_id="turn-9",
        message_kind="question",
        source_message_ids=["m-1", "m-2"],
        created_at="2026-01-02T03:04:05.678901Z",
    )
    client.add_message("shapes", "assistant", parts=[_call("call-5", "price", {"metal": "copper"})])
    client.session_used("shapes", ["viking://resources/tides", "viking://memories/m1"])
    client.session_used(
        "shapes", skill={"uri": "viking://skills/price", "input": "copper", "output": "9 EUR/kg", "success": True}
    )


def _add_forks(client: Client) -> None:
    client.fork_session("shapes", 5, new_session_id="fork", title="From message 5")
    client.add_message("fork", "user", "Go on from the build.")
    client.fork_session("fork", new_session_id="fork-of-fork")
    client.add_message("fork-of-fork", "user", "And from there.")
    client.batch_add_messages("deleted", [_numbered(number) for number in range(1, 6)])
    client.fork_session("deleted", 4, new_session_id="fork-of-deleted")
    client.add_message("fork-of-deleted", "user", "My origin is gone.")
    client.delete_session("deleted")


def _fill_accounts(target: FixtureTarget) -> None:
    """Accounts with users, roles and keys, and settings of sessions."""
    with target.connect() as client:
        client.admin.create_account("globex", "gus")
        client.admin.create_user("globex", "gwen", expires_in_seconds=3_200_000_000)
        client.admin.create_user("globex", "gone")
        client.admin.delete_user("globex", "gone")
        extra = client.admin.create_key("globex", "gus")
        client.admin.revoke_key("globex", "gus", extra.key_id)
        client.admin.set_role("globex", "gwen", "admin")
        client.create_session("by-count", auto_commit_policy={"message_count_threshold": 4})
        client.batch_add_messages("by-count", [_numbered(number) for number in range(1, 4)])
        client.create_session(
            "configured", memory_policy={"self": {"enabled": False}}, memory_extraction_config={"k": [1]}
        )
        client.update_session("configured", title="Renamed")
    with target.connect("globex", "gus") as client:
        client.add_message("shared-name", "user", "Another account, the same name.")


def _fill_commits(target: FixtureTarget) -> None:
    """Archives, and a task in every state. The order matters: a worker runs whatever is due while it is open."""
    _add_provider_messages(target)
    _add_archives(target)
    _add_failed_and_retrying(target)
    _add_killed(target)
    _add_pending_and_cancelled(target)


def _add_provider_messages(target: FixtureTarget) -> None:
    with target.connect() as client:
        call = {"id": "call_7", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Kiel"}'}}
        client.add_message("openai", role="developer", content="Answer briefly.")
        client.add_message("openai", role="assistant", content=None, tool_calls=[call], refusal=None)
        client.add_message("openai", role="tool", tool_call_id="call_7", content="12 degrees, wind from the west")
        thinking = {"type": "thinking", "thinking": "The wind matters.", "signature": "c2ln"}
        use = {"type": "tool_use", "id": "toolu_7", "name": "weather", "input": {"city": "Kiel"}}
        result = {"type": "tool_result", "tool_use_id": "toolu_7", "content": [{"type": "text", "text": LOG}]}
        client.add_message("anthropic", role="user", content="How is the weather in Kiel?")
        client.add_message("anthropic", role="assistant", content=[thinking, use])
        client.add_message("anthropic", role="user", content=[result], metadata={"trace": "t-1"})


def _add_archives(target: FixtureTarget) -> None:
    with target.connect(worker_threads=2) as client:
        for number, text in enumerate(["Never deploy on Fridays.", "Call me Kim. Use tabs.", "The port is 8443."], 1):
            client.batch_add_messages("archived", [*_talk(f"part {number}"), {"role": "user", "content": text}])
            _finish(client, "archived", keep_recent_count=1)
        client.fork_session("archived", 6, new_session_id="fork-of-archived")
        client.add_message("fork-of-archived", "user", "Take the other way.")
        _finish(client, "fork-of-archived")
        client.fork_session("archived", new_session_id="late-fork-of-archived")
        client.add_message("archived", "user", "What is left to do?")
        _finish(client, "openai")
        _finish(client, "shapes", keep_recent_count=2)
    with (
        _model_module().running_model() as model,
        target.connect(worker_threads=1, **MODEL, model_base_url=model.url) as client,
    ):
        client.batch_add_messages("by-model", _talk("the model"))
        _finish(client, "by-model")


def _add_failed_and_retrying(target: FixtureTarget) -> None:
    settings: dict[str, Any] = {**MODEL, "worker_threads": 1, "after_failed_archive": "wait"}
    refuses_every_request = _model_module().Behaviour(formats=())
    with _model_module().running_model(refuses_every_request) as model:
        with target.connect(**settings, model_base_url=model.url) as client:
            for number in (1, 2):
                client.batch_add_messages("failed", _talk(f"failure {number}"))
                task_id = client.commit_session("failed").task_id
                if number == 1:
                    client.wait_for_task(str(task_id))
            _wait_until(lambda: task_states(client, "failed") == [("failed", None), ("pending", "waiting")])
        url = model.url
    retries: dict[str, Any] = {"task_backoff_seconds": RETRY_SECONDS, "task_backoff_max_seconds": RETRY_SECONDS}
    with target.connect(**settings, **retries, model_base_url=url) as client:  # the model has stopped
        client.batch_add_messages("retrying", _talk("an unavailable model"))
        client.commit_session("retrying")
        _wait_until(lambda: task_states(client, "retrying") == [("pending", "retrying")])


def _add_killed(target: FixtureTarget) -> None:
    """A task whose worker was killed after the model had answered once."""
    with target.connect() as client:
        client.batch_add_messages("killed", KILLED_MESSAGES)
        client.commit_session("killed")
    with _model_module().running_model() as model:
        model.gate.clear()
        settings = {**MODEL, "model_base_url": model.url, "model_concurrency": 1, "task_lease_seconds": 5}
        environment = {f"HOLDFAST_{name.upper()}": str(value) for name, value in settings.items()}
        worker = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "--path", target.database, "worker", "--threads", "1"],
            env={**os.environ, **environment},
            cwd=tempfile.gettempdir(),
            stdout=subprocess.DEVNULL,
        )
        try:
            model.wait_for_calls(1)
            model.gate.set()  # releases the call that waits
            model.gate.clear()
            model.wait_for_calls(2)
        finally:
            worker.kill()
            worker.wait(TIMEOUT_SECONDS)


def _add_pending_and_cancelled(target: FixtureTarget) -> None:
    with target.connect() as client:
        for number in (1, 2):
            client.batch_add_messages("queue", _talk(f"queue {number}"))
            client.commit_session("queue")
        client.batch_add_messages("cancelled", _talk("a mistake"))
        client.cancel_task(str(client.commit_session("cancelled").task_id))
        client.add_message("cancelled", "user", "That was too early.")
        client.create_session("idle", auto_commit_policy={"idle_timeout_seconds": 1, "keep_recent_count": 1})
        client.batch_add_messages("idle", _talk("nobody answers"))
    with target.connect("acme", "ada") as client:
        client.commit_session("shared-name")


def _fill_task_kinds(target: FixtureTarget) -> None:
    """A deleted session whose rows are not removed yet."""
    with target.connect() as client:
        for _ in range(ERASED_MESSAGES // 60):
            client.batch_add_messages("erased", [_numbered(number) for number in range(1, 61)])
        client.delete_session("erased")


def _fill_access(target: FixtureTarget) -> None:
    """A shared session with messages of two users, and a share link. The removed user `gone` had no sessions."""
    with target.connect("acme", "ada") as client:
        client.share_session("shared-name", "bob", ["read", "write"])
        client.create_share_link("shared-name")
    with target.connect("acme", "bob") as client:
        client.add_message("shared-name", "user", "I have read your notes.", owner="ada")


def _fill_tree(target: FixtureTarget) -> None:
    """Files with versions, tags and relations, shared and private; a removed folder; a skill."""
    with target.connect() as client:
        client.write("viking://resources/harbour/guide.md", "# Mooring\n\nUse a bowline.\n", tags=["team=port"])
        client.write("viking://resources/harbour/guide.md", "\n## Cleats\n\nTwo turns.\n", mode="append")
        client.write("viking://resources/harbour/\u6d77 notes.txt", SPECIAL_TEXT)
        client.write("viking://resources/old/plan.md", "Sold.")
        client.rm("viking://resources/old", recursive=True)
        client.write("viking://~/resources/diary.txt", "private")
        client.link("viking://resources/harbour/guide.md", "viking://~/resources/diary.txt", reason="see also")
        client.add_skill({"name": "mooring", "description": "Moors a boat.", "content": "# Mooring"})


PARTS: dict[int, Callable[[FixtureTarget], None]] = {
    1: _fill_sessions,
    2: _fill_accounts,
    3: _fill_commits,
    5: _fill_task_kinds,
    7: _fill_access,
    9: _fill_tree,
}
"""What each schema added. A part runs for its schema and all later ones."""

TASK_STATES = {
    "archived": [("completed", None)] * 3,
    "failed": [("failed", None), ("pending", "waiting")],
    "retrying": [("pending", "retrying")],
    "killed": [("running", "summarise 1")],
    "queue": [("pending", None), ("pending", "waiting")],
    "cancelled": [("cancelled", None)],
    "idle": [],
}
"""By session: the status and the stage of each task, oldest first."""


def check_states(target: FixtureTarget) -> None:
    with target.connect() as client:
        for session_id, states in TASK_STATES.items():
            found = task_states(client, session_id)
            assert found == states, f"the tasks of {session_id} are {found}, expected {states}"


def task_states(client: Client, session_id: str) -> list[tuple[str, str | None]]:
    tasks = sorted(client.list_tasks(resource_id=session_id), key=lambda task: task.task_id)
    return [(task.status, None if task.status == "completed" else task.stage) for task in tasks]


def _finish(client: Client, session_id: str, keep_recent_count: int = 0) -> None:
    task = client.wait_for_task(str(client.commit_session(session_id, keep_recent_count).task_id))
    assert task.status == "completed", task


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "a task does not reach its state"
        time.sleep(0.05)


def _model_module() -> Any:
    """The fake model, which the versions with schemas 1 and 2 do not have."""
    return importlib.import_module("holdfast.testing.model")


def _numbered(number: int) -> dict[str, Any]:
    return {"role": ("assistant", "user")[number % 2], "content": f"Message {number} about copper, zinc and tin."}


def _talk(topic: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"Please plan {topic}: the budget is 1,250 EUR, the deadline is 2026-03-01."},
        {"role": "assistant", "parts": [{**_call(f"call {topic}", "plan", {"topic": topic}), **_done("3 steps")}]},
        {"role": "assistant", "content": f"The plan for {topic} has 3 steps; step 2 is pending."},
    ]


def _call(tool_id: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool", "tool_id": tool_id, "tool_name": name, "tool_input": given}


def _result(tool_id: str, name: str, output: str) -> dict[str, Any]:
    return {"type": "tool", "tool_id": tool_id, "tool_name": name, **_done(output)}


def _done(output: Any) -> dict[str, Any]:
    return {"tool_output": output, "tool_status": "completed"}
