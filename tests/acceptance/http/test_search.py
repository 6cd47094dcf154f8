"""Searches over HTTP: what published tests of the API ask for, hostile queries, guests, and the size of answers."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from holdfast.testing.server import ServerProcess, running_server

ROOT_KEY = "the-root-key"
LISTS = {"memories": "memory", "resources": "resource", "skills": "skill"}
TEXTS = [
    "The blue safe in the cellar opens with the code 4711.",
    "Remember the milk, the bread and three eggs.",
    "Our flight to Lisbon leaves on Friday at nine.",
    "config.yaml has the refresh_token of the billing service.",
    "狐狸在花园里睡觉。",
]
ALICE, BOB = ({"X-OpenViking-Account": "acme", "X-OpenViking-User": user} for user in ("alice", "bob"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("search"), log_level="error") as server:
        yield server


@pytest.fixture(scope="module")
def http(server: ServerProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=f"{server.url}/api/v1", timeout=30, headers=ALICE) as client:
        messages = [{"role": "user", "content": text} for text in TEXTS]
        client.post("/sessions/notes/messages/batch", json={"messages": messages}).raise_for_status()
        task = client.post("/sessions/notes/commit").json()["result"]["task_id"]
        deadline = time.monotonic() + 60
        while client.get(f"/tasks/{task}").json()["result"]["status"] != "completed":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        client.post("/system/wait", json={"timeout": 60}).raise_for_status()  # until the overview is indexed
        yield client


def call(http: httpx2.Client, route: str, **fields: Any) -> Any:
    response = http.post(f"/search/{route}", json=fields)
    assert response.status_code == 200, response.text
    return response.json()["result"]


@pytest.mark.parametrize("route", ["find", "search"])
def test_a_result_has_all_lists_and_their_total(http: httpx2.Client, route: str) -> None:
    result = call(http, route, query="blue safe", target_uri="", limit=5, telemetry=False)
    assert all(isinstance(result[name], list) for name in LISTS)
    assert result["total"] >= sum(len(result[name]) for name in LISTS)
    for name, context_type in LISTS.items():
        assert all(hit["context_type"] == context_type for hit in result[name])
    assert route == "search" or not {"messages", "stats", "overviews", "query_plan"} & result.keys()


def test_hits_have_addresses_scores_levels_and_reasons(http: httpx2.Client) -> None:
    notes = "viking://user/alice/sessions/notes"
    result = call(http, "search", query="blue safe code", read_content=True, target_uri=notes)
    for hit in [*result["messages"], *result["overviews"]]:
        assert hit["uri"].startswith(notes)
        assert 0 <= hit["score"] <= 1
        assert hit["level"] in {0, 1, 2}
        assert sum(reason["share"] for reason in hit["reasons"]) == pytest.approx(hit["score"], abs=1e-3)
    for hits in (result["messages"], result["overviews"]):
        assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
        assert len({hit["uri"] for hit in hits}) == len(hits) > 0
    best = result["messages"][0]
    assert best["message"]["parts"] == [{"type": "text", "text": TEXTS[0]}]
    assert {"abstract", "tags", "content"} <= result["overviews"][0].keys()


@pytest.mark.parametrize(
    "fields",
    [
        {"filter": {"op": "must", "field": "x", "conds": [1]}},
        {"filter": "anything"},
        {"include_provenance": True, "time_field": "created_at", "image": None, "search_type": "keywords"},
        {"context_type": ["memory", "resource"], "level": [0, 1, 2], "tags": []},
        {"context_type": [], "since": None, "until": None, "score_threshold": None, "tags": None},
        {"since": "7d", "until": "2099-01-01", "node_limit": 3},
        {"limit": 1_000},
        {"target_uri": ["viking://resources", "viking://user/bob/memories"]},
        {"target_uri": "viking://resources/missing"},
        {"tags": ["kind=note"]},
        {"query": "x" * 5_000},
        {"query": r".*+?^${}()|[]\ (a+)+$ [^"},
    ],
)
@pytest.mark.parametrize("route", ["find", "search"])
def test_what_published_clients_send_is_accepted(http: httpx2.Client, route: str, fields: dict[str, Any]) -> None:
    assert call(http, route, **{"query": "safe", **fields})["total"] >= 0


def test_a_search_accepts_a_session_that_does_not_exist_and_options_of_other_versions(http: httpx2.Client) -> None:
    options = {"quotas": {"memory": 3}, "purpose": "chat", "detail": "auto", "dedup_turns": 2, "peer_scope": None}
    result = call(http, "search", query="safe", session_id="missing", mode="context", rewrite=True, **options)
    assert isinstance(result["stats"], dict)
    assert isinstance(result["messages"], list)


def test_limits_and_thresholds_hold_for_each_list(http: httpx2.Client) -> None:
    assert len(call(http, "search", query="the", limit=1)["messages"]) <= 1
    assert len(call(http, "search", query="the", node_limit=2)["messages"]) <= 2
    for threshold in (0, 0.2, 1):
        found = call(http, "search", query="blue safe", score_threshold=threshold)["messages"]
        assert all(hit["score"] >= threshold for hit in found)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "  "}, "query"),
        ({"query": None}, "query"),
        ({"query": 7}, "query"),
        ({"query": "x" * 300_000}, "query"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": "many"}, "limit"),
        ({"query": "x", "level": 9}, "level"),
        ({"query": "x", "score_threshold": "high"}, "score_threshold"),
        ({"query": "x", "since": "yesterday"}, "since"),
        ({"query": "x", "target_uri": 5}, "target_uri"),
        ({"query": "x", "target_uri": ["viking://user/a\u0000b"]}, "target_uri"),
    ],
)
@pytest.mark.parametrize("route", ["find", "search"])
def test_invalid_input_is_a_400_that_names_the_field(
    http: httpx2.Client, route: str, fields: dict[str, Any], field: str
) -> None:
    response = http.post(f"/search/{route}", json=fields)
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["code"] == "INVALID_ARGUMENT"
    assert error["details"]["validation_errors"][0]["loc"][-1] == field or error["message"].startswith(field)


@pytest.mark.parametrize("target", ["http://example.org/x", "notes", "viking://queue/x", "viking://user//x"])
def test_an_invalid_address_is_a_400(http: httpx2.Client, target: str) -> None:
    response = http.post("/search/find", json={"query": "x", "target_uri": target})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "INVALID_URI")


HOSTILE = {
    "100 KB of words": "lorem ipsum dolor " * 5_700,
    "100 KB of one word": "a" * 100_000,
    "100 KB of different words": " ".join(f"w{number:x}" for number in range(17_000)),
    "operators": 'AND OR NOT NEAR ( ) * : ^ " - + { } ~ & | ! <-> ' * 20,
    "quotes": "\"'`“”«»" * 500,
    "brackets": "((((((((((" * 500,
    "sql": "'; DROP TABLE messages; -- \\",
    "emoji": "🦊🏽‍🚀👩‍👩‍👧‍👦🇵🇹" * 200,
    "combining": "e" + "\u0301" * 5_000,
    "no words": "!?… ---",
    "bidirectional": "\u202eabc\u202c \u2066x\u2069 \ufeff",
    "control": "a\x01b\x1b[31m\x7f",
    "han": "狐狸在花园里睡觉" * 200,
    "twelve scripts": "fox лиса 狐狸 キツネ 여우 ثعلب שועל लोमड़ी สุนัขจิ้งจอก αλεπού მელა አቀበሮ",
    "identifiers": "config.yaml refresh_token ORD-4711 a_b_c_d_e_f_g " * 50,
    "underscores": "_" * 5_000,
    "digits": "4711 " * 2_000,
    "dates": "last May two weeks ago in 2023 yesterday 2026-02-30 99/99/9999 " * 50,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_query_is_answered_or_refused_in_time(http: httpx2.Client, name: str) -> None:
    for route in ("search", "find"):
        started = time.monotonic()
        response = http.post(f"/search/{route}", json={"query": HOSTILE[name], "session_id": "notes"})
        assert response.status_code in {200, 400}, response.text
        assert time.monotonic() - started < 5


@pytest.mark.parametrize("body", [b'{"query":"a\\u0000b"}', b'{"query":"\\ud800"}', b'{"query":"\xff"}', b'{"query":'])
def test_a_query_that_is_no_text_is_a_400(http: httpx2.Client, body: bytes) -> None:
    for route in ("search", "find"):
        response = http.post(f"/search/{route}", content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == 400, response.text


def test_the_answer_has_a_maximum_size_whatever_the_messages_are(http: httpx2.Client) -> None:
    for number in range(8):
        parts = [{"type": "text", "text": f"walrus {number} " + "data " * 100_000 + f"tusk {number}"}]
        http.post("/sessions/zoo/messages", json={"role": "user", "parts": parts}).raise_for_status()
    many = [{"role": "user", "content": f"walrus {number} " + "x" * 20_000} for number in range(100)]
    http.post("/sessions/zoo/messages/batch", json={"messages": many}).raise_for_status()
    response = http.post("/search/search", json={"query": "walrus", "limit": 1_000, "around": 5})
    assert response.status_code == 200
    assert len(response.content) < 3_000_000
    result = response.json()["result"]
    assert len(result["messages"]) >= 108
    assert any(hit["is_shortened"] for hit in result["messages"])
    assert any("shortened" in note for note in result["query_plan"]["notes"])
    assert all(hit["message"]["parts"] for hit in result["messages"])
    large = [hit for hit in result["messages"] if hit["session_id"] == "zoo" and hit["seq"] <= 8]
    assert all(len(json.dumps(hit["message"])) < 5_000 and hit["is_shortened"] for hit in large)
    http.delete("/sessions/zoo").raise_for_status()


def test_a_guest_searches_the_shared_session_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("guest")
    with (
        running_server(folder, root_api_key=ROOT_KEY, log_level="error") as server,
        httpx2.Client(base_url=f"{server.url}/api/v1", timeout=30) as http,
    ):
        root = {"X-API-Key": ROOT_KEY}
        created = http.post("/admin/accounts", json={"account_id": "acme"}, headers=root).json()["result"]
        admin = {"X-API-Key": created["user_key"]}
        for session_id, text in (("shared", "The blue safe."), ("private", "The blue safe has the code 4711.")):
            body = {"role": "user", "content": text}
            http.post(f"/sessions/{session_id}/messages", json=body, headers=admin).raise_for_status()
        links = [
            http.post("/sessions/shared/links", json={"rights": rights}, headers=admin).json()["result"]["token"]
            for rights in (["read"], ["write"])
        ]
        reader, writer = ({"X-API-Key": token} for token in links)

        def found(headers: dict[str, str], **fields: Any) -> list[str]:
            response = http.post("/search/search", json={"query": "blue safe code", **fields}, headers=headers)
            assert response.status_code == 200, response.text
            return [hit["uri"] for hit in response.json()["result"]["messages"]]

        (uri,) = found(reader)
        assert uri.endswith("/sessions/shared#1")
        assert found(reader, target_uri="viking://~/sessions/shared") == [uri]
        assert found(reader, target_uri="viking://session/private", session_id="private") == []
        assert found(reader, session_id="shared") == [uri]
        assert found(writer) == found(writer, session_id="shared") == []
        assert http.post("/search/find", json={"query": "safe"}, headers=reader).json()["result"]["total"] == 0
        assert http.post("/search/search", json={"query": "safe"}, headers=root).status_code == 403


def test_what_a_search_read_is_in_the_audit_log(http: httpx2.Client) -> None:
    body = {"role": "user", "content": "The zeppelin departs at dawn."}
    http.post("/sessions/plans/messages", json=body).raise_for_status()
    http.put("/sessions/plans/collaborators/bob", json={"rights": ["read"]}).raise_for_status()
    result = http.post("/search/search", json={"query": "zeppelin at dawn", "limit": 1}, headers=BOB).json()["result"]
    assert [hit["session_id"] for hit in result["messages"]] == ["plans"]
    deadline = time.monotonic() + 10
    while True:
        lines = http.get("/audit", params={"action": "OpenSession", "limit": 100}).json()["result"]["records"]
        if any(line["user_id"] == "bob" and line["resource"] == "plans owner=alice" for line in lines):
            break
        assert time.monotonic() < deadline, lines
        time.sleep(0.05)
