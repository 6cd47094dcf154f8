"""The API matches its OpenAPI document, and the reference page is self-contained.

With `FUZZ_SECONDS=300 FUZZ_SEED=7` in the environment, schemathesis runs longer, with other cases and in all variants.
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
from holdfast.http.routes import TRANSFER_ROUTES
from holdfast.ops.table import OPERATIONS
from holdfast.testing.server import running_server

SECONDS = int(os.environ.get("FUZZ_SECONDS", "0"))
SEED = os.environ.get("FUZZ_SEED", "1")
CONFIG = Path(__file__).with_name("schemathesis.toml")
ROOT_KEY = "the-root-key"
Headers = dict[str, str]

COVERAGE_ONLY = ["--phases", "coverage", "--exclude-operation-id", "AddMessages"]  # it has the schema of AddMessage
WITHOUT_APPENDS = ["--exclude-operation-id", "AddMessage"]  # half of all cases; the other variant sends some of them
SHORT_RUNS = [  # in a short run, each variant gets some of the phases
    pytest.param("dev", "sqlite", COVERAGE_ONLY, id="dev-sqlite"),
    pytest.param("api_key", "postgres", ["--phases", "fuzzing,stateful", "-n", "2"], id="api_key-postgres"),
]
LONG_RUNS = [
    pytest.param(mode, database, ["--max-time", str(SECONDS)], id=f"{mode}-{database}")
    for mode in ("dev", "api_key")
    for database in ("sqlite", "postgres")
]


@pytest.mark.rounds
@pytest.mark.parametrize(("mode", "target", "amount"), LONG_RUNS if SECONDS else SHORT_RUNS, indirect=["target"])
def test_every_response_matches_the_openapi_document(
    mode: AuthMode, target: str, amount: list[str], tmp_path: Path, *, is_soak: bool
) -> None:
    if amount is COVERAGE_ONLY and not is_soak:
        amount = [*COVERAGE_ONLY, *WITHOUT_APPENDS]
    keys: dict[str, Any] = {"root_api_key": ROOT_KEY} if mode == "api_key" else {}
    with running_server(
        target, log_level="error", tool_output_threshold=100, max_open_uploads=1_000_000, **keys
    ) as server:
        callers, resources = create_resources(server.url, mode)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--no-color"),
                *("--config-file", write_config(tmp_path, callers, resources), "run", f"{server.url}/openapi.json"),
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
        request_counts = re.findall(r'holdfast_requests_total{operation="(\w+)",status="(\d+)"}', metrics)
        assert [count for count in request_counts if count[1] >= "500"] == []
        if SECONDS:
            allowed = {cls.__name__ for cls, entry in OPERATIONS.items() if mode == "dev" or entry.role != "root"}
            never = allowed - {operation for operation, status in request_counts if status == "200"}
            assert len(never) <= 2, f"these operations never succeeded: {never}"


def create_resources(url: str, mode: AuthMode) -> tuple[dict[str, Headers], dict[str, list[str]]]:
    """Create accounts, users, keys and sessions; return the callers' headers and the ids of the resources."""
    root = {"X-API-Key": ROOT_KEY}
    sessions, deletable = ([f"{kind}-{number}" for number in range(20)] for kind in ("chat", "deletable"))
    with httpx2.Client(base_url=f"{url}/api/v1") as http:

        def post(path: str, headers: Headers, **body: Any) -> Any:
            return http.post(path, headers=headers, json=body).raise_for_status().json()["result"]

        for account in ("acme", *deletable):
            post("/admin/accounts", root, account_id=account)
        keeper = post("/admin/accounts", root, account_id="spare", admin_user_id="keeper")["user_key"]
        for user in ("owner", "holder", *deletable):
            post("/admin/accounts/spare/users", root, user_id=user)
        keys = [post("/admin/accounts/spare/users/holder/keys", root)["key_id"] for _ in range(20)]
        if mode == "api_key":  # neither may change acme, so that alice is not deleted
            alice = post("/admin/accounts/acme/users", root, user_id="alice")["user_key"]
            callers = {"alice": {"X-API-Key": alice}, "keeper": {"X-API-Key": keeper}}
        else:  # a caller cannot delete its own account
            callers = {"alice": {"X-OpenViking-Account": "spare", "X-OpenViking-User": "alice"}}
        tool = {"type": "tool", "tool_id": "call_1", "tool_name": "grep", "tool_output": "a line like any other\n" * 20}
        for session in sessions:
            post(f"/sessions/{session}/messages", callers["alice"], role="assistant", parts=[tool])
        found = http.get("/sessions/chat-0/tool-results", headers=callers["alice"]).json()["result"]
    return callers, {
        "sessions": sessions,
        "tool_results": [result["tool_result_id"] for result in found["tool_results"]],
        "accounts": ["spare"],
        "deletable_accounts": deletable,
        "users": ["owner"],
        "deletable_users": deletable,
        "holders": ["holder"],
        "keys": keys,
    }


def write_config(folder: Path, callers: dict[str, Headers], resources: dict[str, list[str]]) -> str:
    identities = [
        {"name": name, "fixedHeaders": [{"name": header, "value": value} for header, value in headers.items()]}
        for name, headers in callers.items()
    ]
    (folder / "identities.json").write_text(json.dumps({"auth": identities}), "utf-8")
    dictionaries = [f"[dictionaries.{name}]\nvalues = {json.dumps(values)}\n" for name, values in resources.items()]
    file = folder / "schemathesis.toml"
    file.write_text("\n".join([CONFIG.read_text("utf-8"), *dictionaries]), "utf-8")
    return str(file)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    folder = tmp_path_factory.mktemp("openapi")
    with running_server(folder, root_api_key=ROOT_KEY) as running, httpx2.Client(base_url=running.url) as http:
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
    operations |= {route.name: (route.verb, route.path) for route in TRANSFER_ROUTES}
    pages = {f"Get{name.capitalize()}": ("GET", f"/{name}") for name in ("health", "ready", "metrics")}
    assert described == operations | pages | {"GetOpenapi": ("GET", "/openapi.json")}


def test_the_document_is_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    schemathesis.openapi.from_dict(document).validate()
    dialect = "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.meta.validate({"$schema": dialect, "$defs": document["components"]["schemas"]})


def test_every_reference_in_the_document_can_be_resolved(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert referred <= document["components"]["schemas"].keys()
    linked = set(re.findall(r'{"operationId": "(\w+)", "parameters": {', text))
    assert linked <= {cls.__name__ for cls in OPERATIONS}
    assert "AddMessage" in linked


def test_the_reference_page_loads_no_external_resources(server: httpx2.Client) -> None:
    page = server.get("/docs").raise_for_status()
    assert server.get("/").text == page.text
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert re.findall(r"https?://|src=|@import|url\(", page.text) == []
    policy = dict(rule.split(" ", 1) for rule in page.headers["content-security-policy"].split("; "))
    assert (policy["default-src"], policy["connect-src"]) == ("'none'", "'self'")
    assert {policy[name] for name in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert not any(source in rule for rule in policy.values() for source in ("*", "http", "unsafe-eval"))
