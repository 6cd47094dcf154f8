"""The commands of the public documentation, pasted into a shell as they are, get the answers that it shows."""

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
"""  # noqa: E501 - as it stands there
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
"""  # noqa: E501 - as it stands there
USED = """{
"status": "ok",
"result": {
"session_id": "a1b2c3d4",
"contexts_used": 1,
"skills_used": 0
},
"time": 0.1
}"""

FULL_EXAMPLE = [  # its first steps; search and commit come later
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
CONTEXT_SHOWN = """{
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

NOT_YET = {"last_commit_at"}
"""What a session has none of before it is first committed."""

Paste = Callable[[str], Any]


def pasting(server: ServerProcess, key: str = "your-key") -> Paste:
    """A shell: only the port is another one, and the key one's own."""
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")

    def paste(command: str) -> Any:
        done = subprocess.run(
            ["sh", "-c", command.replace("localhost:1933", f"localhost:{server.port}").replace("your-key", key)],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env={**os.environ, "NO_PROXY": "localhost"},
        )
        return json.loads(done.stdout)

    return paste


@pytest.fixture(params=["dev", "api_key"])
def paste(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Paste]:
    keys: dict[str, Any] = {"root_api_key": ROOT_KEY} if request.param == "api_key" else {}
    with running_server(tmp_path, log_level="error", **keys) as server:
        if not keys:
            yield pasting(server)
            return
        account = {"account_id": "default", "admin_user_id": "alice"}
        made = httpx2.post(f"{server.url}/api/v1/admin/accounts", headers={"X-API-Key": ROOT_KEY}, json=account)
        yield pasting(server, made.raise_for_status().json()["result"]["user_key"])


def require_like(example: Any, answer: Any, where: str = "") -> None:
    """Everything that the example shows is there, of the same type."""
    assert type(answer) is type(example), where
    if isinstance(example, dict):
        assert example.keys() <= answer.keys(), where
        for name in example.keys() - {key for key in NOT_YET if answer.get(key) is None}:
            require_like(example[name], answer[name], f"{where}.{name}")
    if isinstance(example, list):
        assert len(answer) >= len(example), where
        for item in answer:
            require_like(example[0], item, f"{where}[]")


def test_each_command_gets_the_answer_that_is_shown_for_it(paste: Paste) -> None:
    story = [
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
    for command, shown in story:
        answer = paste(command)
        require_like(json.loads(shown), answer)
        assert answer["status"] == "ok"
        results.append(answer["result"])
    made, named, added, parts, batch, tool, contexts, skill, got, listed, deleted = results
    assert made["uri"] == f"viking://user/{made['user']['user_id']}/sessions/{made['session_id']}"
    assert (named["session_id"], named["user"]["account_id"]) == ("my-custom-session-id", "default")
    assert [added["message_count"], tool["message_count"]] == [1, 6]
    assert parts.items() >= json.loads(ADDED)["result"].items()
    assert batch.items() >= json.loads(BATCHED)["result"].items()
    assert contexts.items() >= json.loads(USED)["result"].items()
    assert (skill["contexts_used"], skill["skills_used"]) == (0, 1)
    assert (got["session_id"], got["message_count"], got["total_message_count"]) == ("a1b2c3d4", 6, 6)
    assert got["pending_tokens"] == tool["pending_tokens"] > 0
    assert {row["session_id"] for row in listed} == {"a1b2c3d4", "my-custom-session-id", made["session_id"]}
    assert deleted == {"session_id": "a1b2c3d4"}
    gone = paste(GET)
    assert (gone["status"], gone["error"]["code"]) == ("error", "NOT_FOUND")


def test_a_commit_its_task_its_archive_and_the_context_answer_as_shown(paste: Paste) -> None:
    for command in FULL_EXAMPLE:
        paste(command)
    committed = paste(COMMIT)
    require_like(json.loads(COMMITTED), committed)
    task_id = committed["result"]["task_id"]
    for _ in range(500):
        task = paste(TASK.replace("uuid-xxx", task_id))
        if task["result"]["status"] == "completed":
            break
        time.sleep(0.02)
    require_like(json.loads(TASK_COMPLETED), task)
    assert task["result"]["result"]["active_count_updated"] == 1
    require_like(json.loads(TASKS_LISTED), paste(TASKS))
    paste(ADD)
    context = paste(CONTEXT)
    require_like(json.loads(CONTEXT_SHOWN), context)
    assert context["result"]["latest_archive_overview"].startswith("# Session Summary")
    archive = paste(ARCHIVE)["result"]
    assert archive["archive_id"] == "archive_001"
    assert (archive["overview"], len(archive["messages"])) == (context["result"]["latest_archive_overview"], 2)
    missing = paste(ARCHIVE.replace("archive_001", "archive_002"))["error"]
    assert (missing["code"], missing["message"]) == ("NOT_FOUND", "Archive archive_002 not found")
    skipped = [paste(COMMIT)["result"] for _ in range(2)][1]
    assert (skipped["status"], skipped["reason"], skipped["archived"]) == ("skipped", "no_messages", False)


def test_the_full_example_works_as_far_as_it_goes(paste: Paste) -> None:
    answers = [paste(command) for command in FULL_EXAMPLE]
    assert [answer["status"] for answer in answers] == ["ok"] * len(FULL_EXAMPLE)
    assert paste(GET)["result"]["message_count"] == 2


def test_a_key_of_the_documentation_opens_nothing(tmp_path: Path) -> None:
    with running_server(tmp_path, log_level="error", root_api_key=ROOT_KEY) as server:
        paste = pasting(server)
        for command in (CREATE, LIST, ADD, DELETE):
            assert paste(command)["error"]["code"] == "UNAUTHENTICATED"
