"""The API is what its description says, and the page that shows it needs nothing from elsewhere.

`FUZZ_SECONDS=300 FUZZ_SEED=7` in the environment lets schemathesis look longer, at other cases and in more places.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest
import schemathesis

from holdfast.config import AuthMode
from holdfast.ops.table import OPERATIONS
from holdfast.testing.server import running_server

SECONDS = int(os.environ.get("FUZZ_SECONDS", "0"))
SEED = os.environ.get("FUZZ_SEED", "1")
CONFIG = Path(__file__).with_name("schemathesis.toml")
ROOT_KEY = "the-root-key"
Headers = dict[str, str]

SHORT = ["--phases", "coverage", "--exclude-operation-id", "AddMessages"]  # its messages are those of AddMessage
LITTLE = [  # with little time, the phases are shared out among modes and databases
    pytest.param("dev", "sqlite", SHORT, id="dev-sqlite"),
    pytest.param("api_key", "postgres", ["--phases", "fuzzing,stateful", "-n", "2"], id="api_key-postgres"),
]
MUCH = [
    pytest.param(mode, database, ["--max-time", str(SECONDS)], id=f"{mode}-{database}")
    for mode in ("dev", "api_key")
    for database in ("sqlite", "postgres")
]


@pytest.mark.parametrize(("mode", "target", "amount"), MUCH if SECONDS else LITTLE, indirect=["target"])
def test_every_answer_is_one_that_the_description_knows(
    mode: AuthMode, target: str, amount: list[str], tmp_path: Path
) -> None:
    keys: dict[str, Any] = {"root_api_key": ROOT_KEY} if mode == "api_key" else {}
    with running_server(target, log_level="error", tool_output_threshold=100, **keys) as server:
        callers, there = furnished(server.url, mode)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--no-color"),
                *("--config-file", configured(tmp_path, callers, there), "run", f"{server.url}/openapi.json"),
                *("--seed", SEED, "--continue-on-failure", *amount),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=SECONDS + 300,
        )
        sys.stdout.write(done.stdout)
        assert done.returncode == 0, done.stderr[-2_000:]
        metrics = httpx2.get(f"{server.url}/metrics", headers={"X-API-Key": ROOT_KEY}).text
        answered = re.findall(r'holdfast_requests_total{operation="(\w+)",status="(\d+)"}', metrics)
        assert [answer for answer in answered if answer[1] >= "500"] == []
        if SECONDS:
            may = {cls.__name__ for cls, entry in OPERATIONS.items() if mode == "dev" or entry.role != "root"}
            never = may - {operation for operation, status in answered if status == "200"}
            assert len(never) <= 2, f"it did not get far: {never} never succeeded"


def furnished(url: str, mode: AuthMode) -> tuple[dict[str, Headers], dict[str, list[str]]]:
    """Put something there to find; who can ask for it, and the names of what there is."""
    root = {"X-API-Key": ROOT_KEY}
    sessions, doomed = ([f"{kind}-{number}" for number in range(20)] for kind in ("chat", "doomed"))
    with httpx2.Client(base_url=f"{url}/api/v1") as http:

        def post(path: str, headers: Headers, **body: Any) -> Any:
            return http.post(path, headers=headers, json=body).raise_for_status().json()["result"]

        for account in ("acme", *doomed):
            post("/admin/accounts", root, account_id=account)
        keeper = post("/admin/accounts", root, account_id="spare", admin_user_id="keeper")["user_key"]
        for user in ("owner", "holder", *doomed):
            post("/admin/accounts/spare/users", root, user_id=user)
        keys = [post("/admin/accounts/spare/users/holder/keys", root)["key_id"] for _ in range(20)]
        if mode == "api_key":  # neither has power over acme, so that alice lives on
            alice = post("/admin/accounts/acme/users", root, user_id="alice")["user_key"]
            callers = {"alice": {"X-API-Key": alice}, "keeper": {"X-API-Key": keeper}}
        else:  # nobody deletes the account in which they act
            callers = {"alice": {"X-OpenViking-Account": "spare", "X-OpenViking-User": "alice"}}
        tool = {"type": "tool", "tool_id": "call_1", "tool_name": "grep", "tool_output": "a line like any other\n" * 20}
        for session in sessions:
            post(f"/sessions/{session}/messages", callers["alice"], role="assistant", parts=[tool])
        found = http.get("/sessions/chat-0/tool-results", headers=callers["alice"]).json()["result"]
    return callers, {
        "sessions": sessions,
        "tool_results": [result["tool_result_id"] for result in found["tool_results"]],
        "accounts": ["spare"],
        "doomed_accounts": doomed,
        "users": ["owner"],
        "doomed_users": doomed,
        "holders": ["holder"],
        "keys": keys,
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    place = tmp_path_factory.mktemp("described")
    with running_server(place, root_api_key=ROOT_KEY) as running, httpx2.Client(base_url=running.url) as http:
        yield http


@pytest.fixture(scope="module")
def document(server: httpx2.Client) -> dict[str, Any]:
    described: dict[str, Any] = server.get("/openapi.json").raise_for_status().json()
    return described


def test_the_document_has_every_operation_and_every_page(document: dict[str, Any]) -> None:
    described = {
        operation["operationId"]: (verb.upper(), path)
        for path, verbs in document["paths"].items()
        for verb, operation in verbs.items()
    }
    operations = {cls.__name__: (entry.verb, entry.path) for cls, entry in OPERATIONS.items()}
    pages = {f"Get{name.capitalize()}": ("GET", f"/{name}") for name in ("health", "ready", "metrics")}
    assert described == operations | pages | {"GetOpenapi": ("GET", "/openapi.json")}


def test_the_document_is_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    schemathesis.openapi.from_dict(document).validate()
    dialect = "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.meta.validate({"$schema": dialect, "$defs": document["components"]["schemas"]})


def test_everything_that_the_document_refers_to_is_there(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert referred <= document["components"]["schemas"].keys()
    linked = set(re.findall(r'{"operationId": "(\w+)", "parameters": {', text))
    assert linked <= {cls.__name__ for cls in OPERATIONS}
    assert "AddMessage" in linked


def test_the_page_loads_nothing_from_elsewhere(server: httpx2.Client) -> None:
    page = server.get("/docs").raise_for_status()
    assert server.get("/").text == page.text
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert re.findall(r"https?://|src=|@import|url\(", page.text) == []
    policy = dict(rule.split(" ", 1) for rule in page.headers["content-security-policy"].split("; "))
    assert (policy["default-src"], policy["connect-src"]) == ("'none'", "'self'")
    assert {policy[name] for name in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert not any(source in rule for rule in policy.values() for source in ("*", "http", "unsafe-eval"))
