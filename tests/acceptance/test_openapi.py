"""The API is what its description says, and the page that shows it needs nothing from elsewhere.

`FUZZ_SECONDS=300 FUZZ_SEED=7` in the environment lets schemathesis look longer, at other cases and in more places.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest
import schemathesis

from holdfast.config import AuthMode
from holdfast.http.openapi import PAGES, document
from holdfast.ops import OPERATIONS
from holdfast.testing.server import running_server

SECONDS = int(os.environ.get("FUZZ_SECONDS", "0"))
SEED = os.environ.get("FUZZ_SEED", "1")
CONFIG = Path(__file__).with_name("schemathesis.toml")
ROOT_KEY = "the-root-key"
Headers = dict[str, str]

LITTLE = [  # with little time, the phases are shared out among modes and databases
    pytest.param("dev", "sqlite", ["--phases", "coverage"], id="dev-sqlite"),
    pytest.param("api_key", "postgres", ["--phases", "fuzzing,stateful", "-n", "3"], id="api_key-postgres"),
]
MUCH = [
    pytest.param(mode, database, ["--max-time", str(SECONDS), "--workers", "2"], id=f"{mode}-{database}")
    for mode in ("dev", "api_key")
    for database in ("sqlite", "postgres")
]


@pytest.mark.parametrize(("mode", "target", "amount"), MUCH if SECONDS else LITTLE, indirect=["target"])
def test_every_answer_is_one_that_the_description_knows(
    mode: AuthMode, target: str, amount: list[str], tmp_path: Path
) -> None:
    keys = {"root_api_key": ROOT_KEY} if mode == "api_key" else {}
    with running_server(target, log_level="error", tool_output_threshold=100, **keys) as server:
        callers, there = furnished(server.url, mode)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--no-color"),
                *("--config-file", configured(tmp_path, callers, there), "run", f"{server.url}/openapi.json"),
                *("--checks", "all", "--seed", SEED, "--continue-on-failure", *amount),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=SECONDS + 300,
        )
        assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
        sys.stdout.write(done.stdout)
        metrics = httpx2.get(f"{server.url}/metrics", headers={"X-API-Key": ROOT_KEY}).text
        answered = re.findall(r'holdfast_requests_total{operation="(\w+)",status="(\d+)"}', metrics)
        assert [answer for answer in answered if answer[1] >= "500"] == []
        if SECONDS:
            may = {cls.__name__ for cls, entry in OPERATIONS.items() if mode == "dev" or entry.role != "root"}
            assert may - {operation for operation, status in answered if status == "200"} == set()


def furnished(url: str, mode: AuthMode) -> tuple[dict[str, Headers], dict[str, list[str]]]:
    """Let there be something to find; who can ask for it, and the names of what there is."""
    root = {"X-API-Key": ROOT_KEY}
    with httpx2.Client(base_url=f"{url}/api/v1") as http:

        def post(path: str, headers: Headers, **body: Any) -> Any:
            return http.post(path, headers=headers, json=body).raise_for_status().json()["result"]

        for account in ("acme", "spare"):  # nobody has power over acme: who asks on its behalf lives on
            keeper = {"X-API-Key": post("/admin/accounts", root, account_id=account)["user_key"]}
        post("/admin/accounts/spare/users", root, user_id="owner")
        callers = {
            name: {"X-API-Key": post("/admin/accounts/acme/users", root, user_id=name)["user_key"]}
            if mode == "api_key"
            else {"X-OpenViking-Account": "acme", "X-OpenViking-User": name}
            for name in ("alice", "bob")
        }
        sessions = [f"chat-{number}" for number in range(20)]
        tool = {"type": "tool", "tool_id": "call_1", "tool_name": "grep", "tool_output": "a line like any other\n" * 20}
        for session in sessions:
            post(f"/sessions/{session}/messages", callers["alice"], role="assistant", parts=[tool])
        found = http.get("/sessions/chat-0/tool-results", headers=callers["alice"]).json()["result"]
        keys = [post("/admin/accounts/spare/users/owner/keys", root)["key_id"] for _ in range(20)]
    return callers | ({"keeper": keeper} if mode == "api_key" else {}), {
        "sessions": sessions,
        "tool_results": [result["tool_result_id"] for result in found["tool_results"]],
        "accounts": ["spare"],
        "users": ["owner"],
        "keys": keys,
        "numbers": ['"0"', '"1"', '"2"'],
    }


def configured(folder: Path, callers: dict[str, Headers], there: dict[str, list[str]]) -> str:
    identities = [
        {"name": name, "fixedHeaders": [{"name": header, "value": value} for header, value in headers.items()]}
        for name, headers in callers.items()
    ]
    (folder / "identities.json").write_text(json.dumps({"auth": identities}), "utf-8")
    known = [f"[dictionaries.{name}]\nvalues = {json.dumps(values)}\n" for name, values in there.items()]
    file = folder / "schemathesis.toml"
    file.write_text("\n".join([CONFIG.read_text("utf-8"), *known]), "utf-8")
    return str(file)
