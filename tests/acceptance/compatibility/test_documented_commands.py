"""The commands in the documentation of the OpenViking API, run unchanged in a shell, return the responses it shows."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.testing.server import ServerProcess, running_server

ROOT_KEY = "the-root-key"
CREATE = r"""curl -X POST http://localhost:1933/api/v1/sessions \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key"
"""
CREATE_NAMED = r"""curl -X POST http://localhost:1933/api/v1/sessions \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key" \
-d '{"session_id": "my-custom-session-id"}'
"""
CREATED = """{
"status": "ok",
"result": {
"session_id": "a1b2c3d4",
"uri": "viking://user/alice/sessions/a1b2c3d4",
"user": {
"account_id": "default",
"user_id": "alice"
}
},
"time": 0.1
}"""

LIST = r"""curl -X GET http://localhost:1933/api/v1/sessions \
-H "X-API-Key: your-key"
"""
LISTED = """{
"status": "ok",
"result": [
{
"session_id": "a1b2c3d4",
"uri": "viking://user/alice/sessions/a1b2c3d4",
"is_dir": true
},
{
"session_id": "e5f6g7h8",
"uri": "viking://user/alice/sessions/e5f6g7h8",
"is_dir": true
}
],
"time": 0.1
}"""

GET = r"""curl -X GET http://localhost:1933/api/v1/sessions/a1b2c3d4 \
-H "X-API-Key: your-key"
"""
GOT = """{
"status": "ok",
"result": {
"session_id": "a1b2c3d4",
"created_at": "2026-03-23T10:00:00+08:00",
"updated_at": "2026-03-23T11:30:00+08:00",
"message_count": 5,
"total_message_count": 20,
"commit_count": 3,
"memories_extracted": {
"profile": 1,
"preferences": 2,
"entities": 3,
"events": 1,
"cases": 2,
"patterns": 1,
"tools": 0,
"skills": 0,
"total": 10
},
"last_commit_at": "2026-03-23T11:00:00+08:00",
"llm_token_usage": {
"prompt_tokens": 5200,
"completion_tokens": 1800,
"total_tokens": 7000,
"cached_tokens": 1200,
"reasoning_tokens": 800
},
"user": {
"account_id": "default",
"user_id": "alice"
},
"pending_tokens": 450
}
}"""

DELETE = r"""curl -X DELETE http://localhost:1933/api/v1/sessions/a1b2c3d4 \
-H "X-API-Key: your-key"
"""
DELETED = """{
"status": "ok",
"result": {
"session_id": "a1b2c3d4"
},
"time": 0.1
}"""

ADD = r"""curl -X POST http://localhost:1933/api/v1/sessions/a1b2c3d4/messages \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key" \
-d '{
"role": "user",
"content": "How do I authenticate users?"
}'
"""
ADD_PARTS = r"""curl -X POST http://localhost:1933/api/v1/sessions/a1b2c3d4/messages \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key" \
-d '{
"role": "assistant",
"parts": [
{"type": "text", "text": "Based on the authentication guide..."},
{"type": "context", "uri": "viking://resources/docs/auth/", "context_type": "resource", "abstract": "Auth guide"}
]
}'
"""
ADD_TOOL = r"""curl -X POST http://localhost:1933/api/v1/sessions/a1b2c3d4/messages \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key" \
-d '{
"role": "assistant",
"parts": [
{"type": "text", "text": "Let me search for that..."},
{"type": "tool", "tool_id": "call_123", "tool_name": "search_web", "tool_input": {"query": "OAuth"}, "tool_status": "completed", "tool_output": "Results..."}
]
}'
"""  # noqa: E501 - copied unchanged
ADDED = """{
"status": "ok",
"result": {
"session_id": "a1b2c3d4",
"message_count": 2
},
"time": 0.1
}"""

BATCH = r"""curl -X POST http://localhost:1933/api/v1/sessions/a1b2c3d4/messages/batch \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key" \
-d '{
"messages": [
{"role": "user", "content": "How do I authenticate users?"},
{"role": "assistant", "content": "You can use OAuth 2.0 for authentication."},
{"role": "user", "content": "Any specific recommendations?"}
]
}'
"""
BATCHED = """{
"status": "ok",
"result": {
"session_id": "a1b2c3d4",
"message_count": 5,
"added": 3
},
"time": 0.1
}"""

USE_CONTEXTS = r"""curl -X POST http://localhost:1933/api/v1/sessions/a1b2c3d4/used \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key" \
-d '{"contexts": ["viking://resources/docs/auth/"]}'
"""
USE_SKILL = r"""curl -X POST http://localhost:1933/api/v1/sessions/a1b2c3d4/used \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key" \
-d '{"skill": {"uri": "viking://user/skills/search-web/", "input": {"query": "OAuth"}, "output": "Results...", "success": true}}'
"""  # noqa: E501 - copied unchanged
USED = """{
"status": "ok",
"result": {
"session_id": "a1b2c3d4",
"contexts_used": 1,
"skills_used": 0
},
"time": 0.1
}"""

FULL_EXAMPLE = [  # its first steps, before search and commit
    r"""curl -X POST http://localhost:1933/api/v1/sessions \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key"
""",
    r"""curl -X POST http://localhost:1933/api/v1/sessions/a1b2c3d4/messages \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key" \
-d '{"role": "user", "content": "How do I configure embedding?"}'
""",
    r"""curl -X POST http://localhost:1933/api/v1/sessions/a1b2c3d4/messages \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key" \
-d '{"role": "assistant", "content": "Based on the documentation, you can configure embedding..."}'
""",
    r"""curl -X POST http://localhost:1933/api/v1/sessions/a1b2c3d4/used \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key" \
-d '{"contexts": ["viking://resources/docs/embedding/"]}'
""",
]

COMMIT = r"""curl -X POST http://localhost:1933/api/v1/sessions/a1b2c3d4/commit \
-H "Content-Type: application/json" \
-H "X-API-Key: your-key"
"""
COMMITTED = """{
"status": "ok",
"result": {
"session_id": "a1b2c3d4",
"status": "accepted",
"task_id": "uuid-xxx",
"archive_uri": "viking://user/alice/sessions/a1b2c3d4/history/archive_001",
"archived": true
}
}"""
TASK = r"""curl -X GET http://localhost:1933/api/v1/tasks/uuid-xxx \
-H "X-API-Key: your-key"
"""
TASK_COMPLETED = """{
"status": "ok",
"result": {
"task_id": "uuid-xxx",
"task_type": "session_commit",
"status": "completed",
"result": {
"session_id": "a1b2c3d4",
"archive_uri": "viking://user/alice/sessions/a1b2c3d4/history/archive_001",
"memories_extracted": {
},
"active_count_updated": 2,
"token_usage": {
"llm": {
"prompt_tokens": 5200,
"completion_tokens": 1800,
"total_tokens": 7000
},
"embedding": {
"total_tokens": 1500
},
"total": {
"total_tokens": 8500
}
}
}
}
}"""
TASKS = r"""curl -X GET "http://localhost:1933/api/v1/tasks?task_type=session_commit&status=completed&limit=20" \
-H "X-API-Key: your-key"
"""
TASKS_LISTED = """{
"status": "ok",
"result": [
{
"task_id": "uuid-xxx",
"task_type": "session_commit",
"status": "running",
"resource_id": "a1b2c3d4",
"created_at": 1770000000.0,
"updated_at": 1770000005.0,
"error": null,
"stage": null
}
]
}"""
CONTEXT = r"""curl -X GET "http://localhost:1933/api/v1/sessions/a1b2c3d4/context?token_budget=128000" \
-H "X-API-Key: your-key"
"""
CONTEXT_RESPONSE = """{
"status": "ok",
"result": {
"latest_archive_overview": "# Session Summary",
"pre_archive_abstracts": [],
"messages": [
{
"id": "msg_live_1",
"role": "assistant",
"parts": [
{"type": "text", "text": "Current live message"}
],
"created_at": "2026-03-24T09:10:20Z"
}
],
"estimatedTokens": 160,
"stats": {
"totalArchives": 2,
"includedArchives": 1,
"droppedArchives": 0,
"failedArchives": 0,
"activeTokens": 98,
"archiveTokens": 62
}
}
}"""
ARCHIVE = r"""curl -X GET "http://localhost:1933/api/v1/sessions/a1b2c3d4/archives/archive_001" \
-H "X-API-Key: your-key"
"""

RunCommand = Callable[[str], Any]


def shell(server: ServerProcess, key: str = "your-key") -> RunCommand:
    """Return a function that runs a command with the port and the key replaced, and parses its output."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")

    def run(command: str) -> Any:
        result = subprocess.run(
            ["sh", "-c", command.replace("localhost:1933", f"localhost:{server.port}").replace("your-key", key)],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env={**os.environ, "NO_PROXY": "localhost"},
        )
        return json.loads(result.stdout)

    return run


@pytest.fixture(params=["dev", "api_key"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunCommand]:
    keys: dict[str, Any] = {"root_api_key": ROOT_KEY} if request.param == "api_key" else {}
    with running_server(tmp_path, log_level="error", **keys) as server:
        if not keys:
            yield shell(server)
            return
        account = {"account_id": "default", "admin_user_id": "alice"}
        created = httpx2.post(f"{server.url}/api/v1/admin/accounts", headers={"X-API-Key": ROOT_KEY}, json=account)
        yield shell(server, created.raise_for_status().json()["result"]["user_key"])


def assert_has_shape(response: Any, example: Any, where: str = "") -> None:
    """Check that the response has every field of the example, with the same type."""
    assert type(response) is type(example), where
    if isinstance(example, dict):
        assert example.keys() <= response.keys(), where
        for name in example:
            assert_has_shape(response[name], example[name], f"{where}.{name}")
    if isinstance(example, list):
        assert len(response) >= len(example), where
        for item in response:
            assert_has_shape(item, example[0], f"{where}[]")


def test_each_command_returns_the_documented_response(run: RunCommand) -> None:
    examples = [
        (CREATE, CREATED),
        (CREATE_NAMED, CREATED),
        (ADD, ADDED),
        (ADD_PARTS, ADDED),
        (BATCH, BATCHED),
        (ADD_TOOL, ADDED),
        (USE_CONTEXTS, USED),
        (USE_SKILL, USED),
        (GET, GOT),
        (LIST, LISTED),
        (DELETE, DELETED),
    ]
    results = []
    for command, example in examples:
        response = run(command)
        assert_has_shape(response, json.loads(example))
        assert response["status"] == "ok"
        results.append(response["result"])
    created, named, added, parts, batch, tool, contexts, skill, got, listed, deleted = results
    assert created["uri"] == f"viking://user/{created['user']['user_id']}/sessions/{created['session_id']}"
    assert (named["session_id"], named["user"]["account_id"]) == ("my-custom-session-id", "default")
    assert [added["message_count"], tool["message_count"]] == [1, 6]
    assert parts.items() >= json.loads(ADDED)["result"].items()
    assert batch.items() >= json.loads(BATCHED)["result"].items()
    assert contexts.items() >= json.loads(USED)["result"].items()
    assert (skill["contexts_used"], skill["skills_used"]) == (0, 1)
    assert (got["session_id"], got["message_count"], got["total_message_count"]) == ("a1b2c3d4", 6, 6)
    assert got["pending_tokens"] == tool["pending_tokens"] > 0
    assert {row["session_id"] for row in listed} == {"a1b2c3d4", "my-custom-session-id", created["session_id"]}
    assert deleted == {"session_id": "a1b2c3d4"}
    missing = run(GET)
    assert (missing["status"], missing["error"]["code"]) == ("error", "NOT_FOUND")


def test_commit_task_archive_and_context_return_the_documented_responses(run: RunCommand) -> None:
    for command in FULL_EXAMPLE:
        run(command)
    committed = run(COMMIT)
    assert_has_shape(committed, json.loads(COMMITTED))
    task_id = committed["result"]["task_id"]
    for _ in range(500):
        task = run(TASK.replace("uuid-xxx", task_id))
        if task["result"]["status"] == "completed":
            break
        time.sleep(0.02)
    assert_has_shape(task, json.loads(TASK_COMPLETED))
    assert task["result"]["result"]["active_count_updated"] == 1
    assert_has_shape(run(TASKS), json.loads(TASKS_LISTED))
    run(ADD)
    context = run(CONTEXT)
    assert_has_shape(context, json.loads(CONTEXT_RESPONSE))
    assert context["result"]["latest_archive_overview"].startswith("# Session Summary")
    archive = run(ARCHIVE)["result"]
    assert archive["archive_id"] == "archive_001"
    assert (archive["overview"], len(archive["messages"])) == (context["result"]["latest_archive_overview"], 2)
    missing = run(ARCHIVE.replace("archive_001", "archive_002"))["error"]
    assert (missing["code"], missing["message"]) == ("NOT_FOUND", "Archive archive_002 not found")
    run(COMMIT)
    skipped = run(COMMIT)["result"]
    assert (skipped["status"], skipped["reason"], skipped["archived"]) == ("skipped", "no_messages", False)


def test_the_first_steps_of_the_full_example_work(run: RunCommand) -> None:
    responses = [run(command) for command in FULL_EXAMPLE]
    assert [response["status"] for response in responses] == ["ok"] * len(FULL_EXAMPLE)
    assert run(GET)["result"]["message_count"] == 2


def test_the_example_key_of_the_documentation_is_rejected(tmp_path: Path) -> None:
    with running_server(tmp_path, log_level="error", root_api_key=ROOT_KEY) as server:
        run = shell(server)
        for command in (CREATE, LIST, ADD, DELETE):
            assert run(command)["error"]["code"] == "UNAUTHENTICATED"
