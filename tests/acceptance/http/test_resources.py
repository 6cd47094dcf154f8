"""Resources and watches over HTTP, as the published clients send them."""

import io
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import holdfast
from holdfast.testing.server import ServerProcess, running_server

ROOT_KEY = "the-operators-key"
GUIDE = b"# Tides\n\nHigh water is at noon.\n"
SENT_BY_OV = {
    "reason": "",
    "instruction": "",
    "wait": False,
    "strict": False,
    "directly_upload_media": True,
    "watch_interval": 0.0,
}
"""What the program `ov` sends with every resource."""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watched")
    (folder / "a.md").write_bytes(GUIDE)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, watched: Path) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("resources")
    with running_server(folder, root_api_key=ROOT_KEY, resource_folders=str(watched)) as server:
        yield server


@pytest.fixture(scope="module")
def http(server: ServerProcess) -> Iterator[httpx2.Client]:
    with holdfast.connect(server.url, api_key=ROOT_KEY) as operator:
        operator.admin.create_account("acme", "admin")
        key = operator.admin.create_user("acme", "alice").user_key
    with httpx2.Client(base_url=f"{server.url}/api/v1", headers={"X-API-Key": key}, timeout=30) as client:
        yield client


def upload(http: httpx2.Client, name: str, data: bytes) -> str:
    response = http.post("/resources/temp_upload", files={"file": (name, data)})
    return str(response.json()["result"]["temp_file_id"])


def add(http: httpx2.Client, **fields: Any) -> httpx2.Response:
    return http.post("/resources", json=fields)


def test_an_upload_is_added_as_ov_does_it(http: httpx2.Client) -> None:
    file = upload(http, "tides.md", GUIDE)
    answer = add(http, temp_file_id=file, source_name="tides.md", **SENT_BY_OV).json()["result"]
    assert set(answer) == {"status", "task_id", "source_path", "root_uri"}
    assert (answer["root_uri"], answer["source_path"]) == ("viking://resources/tides", "tides.md")
    waited = add(http, temp_file_id=file, source_name="tides.md", **{**SENT_BY_OV, "wait": True}).json()["result"]
    assert waited["status"] == "success"
    assert waited["root_uri"] == "viking://resources/tides_1"
    assert waited["queue_status"]["Semantic"] == {
        "processed": 1,
        "requeue_count": 0,
        "error_count": 0,
        "errors": [],
    }
    assert (waited["errors"], waited["meta"], waited["context_count"]) == ([], {}, 2)
    abstract = http.get("/content/abstract", params={"uri": "viking://resources/tides_1"}).json()["result"]
    assert "noon" in abstract
    task = http.get(f"/tasks/{waited['task_id']}").json()["result"]
    assert (task["task_type"], task["resource_id"]) == ("add_resource", waited["root_uri"])


def test_a_folder_that_a_client_packed_is_named_after_the_folder(http: httpx2.Client) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("a.md", "b/c.txt", "b/d.py"):
            archive.writestr(name, f"text of {name}")
    file = upload(http, ".tmpAB12cd.zip", packed.getvalue())
    answer = add(http, temp_file_id=file, source_name="handbook", include="*.md,*.txt", wait=True).json()["result"]
    assert answer["root_uri"] == "viking://resources/handbook"
    entries = http.get("/fs/tree", params={"uri": answer["root_uri"]}).json()["result"]
    assert {entry["rel_path"] for entry in entries} == {"a.md", "b", "b/c.txt"}


@pytest.mark.parametrize(
    ("fields", "status", "named"),
    [
        ({}, 400, "path"),
        ({"path": ""}, 400, "path"),
        ({"path": "Just a text with no path"}, 400, "not a URL"),
        ({"path": "/etc/passwd"}, 403, "resource_folders"),
        ({"path": "/etc/../etc"}, 403, "resource_folders"),
        ({"path": "file:///etc/passwd"}, 403, "upload"),
        ({"path": "https://docs.example/a.html"}, 403, "fetch_urls"),
        ({"path": "https://docs.example/a.git", "add_type": "git"}, 403, "fetch_git"),
        ({"path": "https://docs.example/a", "add_type": "feishu"}, 400, "add_type"),
        ({"temp_file_id": "upload_0123.md"}, 403, "upload"),
        ({"temp_file_id": "../../etc/passwd"}, 403, "upload"),
        ({"temp_file_id": "x", "watch_interval": 5, "to": "viking://resources/x"}, 400, "watch_interval"),
        ({"path": "https://docs.example/", "watch_interval": 5}, 400, "to"),
        ({"temp_file_id": "x", "to": "viking://resources/a", "parent": "viking://resources"}, 400, "parent"),
        ({"temp_file_id": "x", "to": "resources/a"}, 400, "viking://"),
        ({"temp_file_id": "x", "acl": {"read": ["bob"]}}, 400, "acl"),
        ({"temp_file_id": "x", "args": {"branch": "main"}}, 400, "args"),
        ({"temp_file_id": "x", "timeout": 0}, 400, "timeout"),
    ],
)
def test_a_bad_request_says_what_is_wrong(http: httpx2.Client, fields: dict[str, Any], status: int, named: str) -> None:
    response = add(http, **fields)
    assert (response.status_code, named in response.text) == (status, True), response.text


def test_targets_are_in_the_scope_of_resources(http: httpx2.Client) -> None:
    file = upload(http, "a.md", GUIDE)
    for uri in ("viking://user/alice/skills/x", "viking://agent/x", "viking://system/skills/x", "viking://session/x"):
        response = add(http, temp_file_id=file, to=uri)
        assert (response.status_code, "scope" in response.text) == (400, True)
    assert add(http, temp_file_id=file, to="viking://user/bob/resources/x").status_code == 404
    assert add(http, temp_file_id=file, to="viking://resources/../x").status_code == 403
    assert add(http, temp_file_id=file, parent="viking://resources/nothing").status_code == 404
    both = add(http, temp_file_id=file, path="https://docs.example/", to="viking://resources/both", wait=True)
    assert both.json()["result"]["root_uri"] == "viking://resources/both"


def test_a_wait_for_a_damaged_archive_fails_with_the_name_of_the_file(http: httpx2.Client) -> None:
    file = upload(http, "damaged.zip", b"PK\x03\x04 and no more")
    response = add(http, temp_file_id=file, wait=True)
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "PROCESSING_ERROR"
    assert "damaged.zip" in response.text
    assert http.get("/fs/stat", params={"uri": "viking://resources/damaged"}).status_code == 404


def test_a_folder_of_the_server_is_watched(http: httpx2.Client, watched: Path) -> None:
    uri = "viking://resources/watched"
    added = add(http, path=str(watched), to=uri, watch_interval=60.0, wait=True).json()["result"]
    assert added["root_uri"] == uri
    listed = http.get("/watches", params={"active_only": "true"}).json()["result"]
    assert (listed["total"], listed["tasks"][0]["to_uri"]) == (1, uri)
    watch_id = listed["tasks"][0]["task_id"]
    assert http.get("/watches", params={"to_uri": uri}).json()["result"]["tasks"] == listed["tasks"]
    assert http.get(f"/watches/{watch_id}").json()["result"]["path"] == str(watched)
    changed = http.patch("/watches", params={"to_uri": uri}, json={"watch_interval": 30.5}).json()["result"]
    assert (changed["watch_interval"], changed["is_active"]) == (30.5, True)
    assert http.patch(f"/watches/{watch_id}", json={"is_active": False}).json()["result"]["is_active"] is False
    assert http.get("/watches", params={"active_only": "true"}).json()["result"]["total"] == 0
    (watched / "b.md").write_text("# New")
    (watched / "outside").symlink_to("/etc/hostname")
    task_id = http.post("/watches/trigger", params={"to_uri": uri}, json={}).json()["result"]["task_id"]
    result = wait_for(http, task_id)["result"]
    assert (result["added"], result["unchanged"]) == (1, 1)
    assert [problem["file"] for problem in result["errors"]] == ["outside"]
    assert http.post(f"/watches/{watch_id}/trigger").status_code == 200
    assert http.delete("/watches", params={"to_uri": uri}).json()["result"]["task_id"] == watch_id
    assert http.get(f"/watches/{watch_id}").status_code == 404
    assert http.delete(f"/watches/{watch_id}").status_code == 404


def wait_for(http: httpx2.Client, task_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while True:
        task: dict[str, Any] = http.get(f"/tasks/{task_id}").json()["result"]
        if task["status"] not in {"pending", "running"}:
            return task
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_many_requests_can_wait_at_once(http: httpx2.Client) -> None:
    """A waiting request needs no thread of the server."""
    with httpx2.Client(base_url=http.base_url, headers=http.headers, timeout=30) as other:
        files = [upload(http, f"wait{number}.md", b"# %d" % number) for number in range(3)]
        for file in files:
            assert add(other, temp_file_id=file, wait=True, timeout=20).json()["result"]["status"] == "success"
        slow = add(other, temp_file_id=files[0], wait=True, timeout=0.001)
    assert slow.status_code in {200, 504}
    assert slow.status_code == 200 or "continues in the background" in slow.text
