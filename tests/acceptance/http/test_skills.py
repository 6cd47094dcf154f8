"""Skills over HTTP, as published clients and tests of the API ask for them."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from holdfast.testing.server import running_server

ALICE = {"X-OpenViking-Account": "acme", "X-OpenViking-User": "alice"}


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with (
        running_server(tmp_path_factory.mktemp("skills"), log_level="error") as server,
        httpx2.Client(base_url=f"{server.url}/api/v1", timeout=30, headers=ALICE) as client,
    ):
        yield client


def result(response: httpx2.Response) -> Any:
    assert response.status_code == 200, response.text
    return response.json()["result"]


def test_a_skill_is_added_read_updated_and_deleted_by_its_name(http: httpx2.Client) -> None:
    added = result(http.post("/skills", json={"data": {"name": "t1", "content": "# T"}, "wait": True, "timeout": 30}))
    assert (added["status"], added["name"]) == ("success", "t1")
    assert added["uri"].startswith("viking://user/alice/skills/")
    listed = result(http.get("/skills", params={"node_limit": 1000}))
    (entry,) = (skill for skill in listed["skills"] if skill["name"] == "t1")
    assert entry.keys() >= {"type", "uri", "root_uri", "skill_md_uri", "description", "allowed_tools"}
    query = {"include_content": "true", "include_files": "true", "include_source": "true", "include_integrity": "true"}
    shown = result(http.get("/skills/t1", params=query))
    assert shown["files"][0]["path"] == "SKILL.md"
    assert (len(shown["content_sha256"]), shown["content"].endswith("# T\n")) == (64, True)
    only = result(http.get("/skills/t1", params={"level": 0, "include_content": "false"}))
    assert only["abstract"].startswith("t1")
    assert (only["overview"], only["content"]) == (None, None)
    updated = result(http.put("/skills/t1", json={"data": {"description": "New."}, "wait": False}))
    assert updated["action"] == "update"
    assert http.put("/skills/t1", json={"from_source": True, "wait": False}).status_code == 412
    assert result(http.delete("/skills/t1"))["estimated_deleted_count"] == 2
    for response in (http.get("/skills/t1"), http.delete("/skills/t1"), http.put("/skills/t1", json={"data": {}})):
        assert response.status_code == 404


def test_an_upload_is_added_with_its_source(http: httpx2.Client) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("SKILL.md", "---\nname: zipped\ndescription: From a zip.\n---\n# Z\n")
        archive.writestr("assets/a.bin", b"\x00\xff")
    upload = http.post("/resources/temp_upload", files={"file": ("zipped.zip", packed.getvalue())})
    source = {"type": "local", "source": "/home/a/zipped", "path": "zipped"}
    fields = {"wait": False, "temp_file_id": result(upload)["temp_file_id"], "source_metadata": source}
    assert result(http.post("/skills", json=fields))["auxiliary_files"] == 1
    assert result(http.get("/skills/zipped", params={"include_source": "true"}))["source"] == source
    found = result(http.post("/skills/find", json={"query": "zip", "limit": 5, "level": [0, 1, 2], "telemetry": False}))
    assert found["root_uris"] == ["viking://user/alice/skills", "viking://system/skills"]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 400),
        ({"data": {}}, 400),
        ({"data": {"description": "no name"}}, 400),
        ({"data": "just a text"}, 400),
        ({"data": "https://example.com/skill"}, 400),
        ({"temp_file_id": "upload_0.zip"}, 403),
        ({"data": {"name": "Ünïcode 技能"}}, 200),
        ({"data": {"name": "t" * 200}}, 200),
        ({"data": {"name": "t" * 201}}, 400),
        ({"data": {"name": "deep", "metadata": {"a": [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}}}, 400),
        ({"data": {"name": "x"}, "target_uri": "viking://user/bob/skills"}, 404),
    ],
)
def test_a_request_is_answered_with_its_status(http: httpx2.Client, fields: dict[str, Any], status: int) -> None:
    response = http.post("/skills", json=fields)
    assert response.status_code == status, response.text


def test_a_text_is_validated(http: httpx2.Client) -> None:
    checked = result(http.post("/skills/validate", json={"data": "skills/review", "strict": True}))
    assert (checked["valid"], checked["errors"][0]["field"]) == (False, "data")
