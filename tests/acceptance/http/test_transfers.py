"""Multipart uploads and downloads over HTTP."""

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

import holdfast
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.errors import TooLargeError
from holdfast.store.database import EVERY_ACCOUNT
from holdfast.testing.faults.connections import TIMEOUT_SECONDS, Connection
from holdfast.testing.faults.watching import peak_memory, wait_for
from holdfast.testing.server import ServerProcess, running_server

MIB = 1024 * 1024
ROOT_KEY = "the-operators-key"
UPLOAD, DOWNLOAD = "/api/v1/resources/temp_upload", "/api/v1/content/download"
FORM = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("transfers")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    settings = {"root_api_key": ROOT_KEY, "request_timeout_seconds": 2, "slow_client_seconds": 2}
    with running_server(folder, **settings) as server:
        yield server


@pytest.fixture(scope="module")
def keys(server: ServerProcess) -> dict[str, str]:
    with holdfast.connect(server.url, api_key=ROOT_KEY) as operator:
        keys = {"admin": operator.admin.create_account("acme", "admin").user_key}
        keys |= {user: operator.admin.create_user("acme", user).user_key for user in ("alice", "bob")}
        keys["auditor"] = operator.admin.create_user("acme", "auditor", role="auditor").user_key
    return keys


@pytest.fixture
def http(server: ServerProcess, keys: dict[str, str]) -> Iterator[httpx2.Client]:
    headers = {"X-API-Key": keys["alice"]}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=TIMEOUT_SECONDS) as client:
        yield client


def upload(http: httpx2.Client, name: str, data: Any, **headers: str) -> httpx2.Response:
    return http.post(UPLOAD, files={"file": (name, data)}, data={"reason": "ignored"}, headers=headers)


def open_uploads(folder: Path) -> int:
    """Count the uploads that are neither complete nor expired, in the database of the server."""
    engine = Engine(open_database(str(folder), Settings()))
    sql = "SELECT COUNT(*) FROM uploads WHERE hash IS NULL AND expires_at > holdfast_now()"
    try:
        return int(engine.db.read(EVERY_ACCOUNT, lambda tx: tx.all(sql))[0][0])
    finally:
        engine.close()


def test_101_mib_are_uploaded_without_being_held_in_memory(tmp_path: Path) -> None:
    file, digest = tmp_path / "large.bin", hashlib.sha256()
    with file.open("wb") as opened:
        for _ in range(101):
            block = os.urandom(MIB)
            digest.update(block)
            opened.write(block)
    with (
        running_server(tmp_path / "served") as server,  # one with the usual time for a request
        httpx2.Client(base_url=server.url, timeout=TIMEOUT_SECONDS) as http,
        file.open("rb") as opened,
    ):
        assert upload(http, "warm up", b"x").status_code == 200
        before = peak_memory(server)
        response = upload(http, "large.bin", opened)
        assert response.status_code == 200, response.text
        assert peak_memory(server) - before < 40 * MIB
    result = response.json()["result"]
    assert (result["size"], result["sha256"]) == (101 * MIB, digest.hexdigest())
    assert result["temp_file_id"].endswith(".bin")


def test_the_gate_decides_who_may_upload(http: httpx2.Client, keys: dict[str, str]) -> None:
    for key, status in ((keys["auditor"], 403), (ROOT_KEY, 403), ("wrong", 401), (keys["bob"], 200)):
        response = upload(http, "a.md", b"x" * 100_000, **{"X-API-Key": key})
        assert response.status_code == status, response.text
        assert response.json()["status"] == ("ok" if status == 200 else "error")


@pytest.mark.parametrize(
    ("content_type", "body", "word"),
    [
        ("application/json", b"{}", "Content-Type"),
        ("multipart/form-data; boundary=b", b"--b--\r\n", "file"),
        ("multipart/form-data; boundary=b", FORM + b"cut off", "body"),
    ],
)
def test_an_invalid_upload_names_what_is_wrong(
    http: httpx2.Client, folder: Path, content_type: str, body: bytes, word: str
) -> None:
    response = http.post(UPLOAD, content=body, headers={"Content-Type": content_type})
    assert response.status_code == 400
    assert response.json()["error"]["details"]["field"] == word
    assert open_uploads(folder) == 0
    assert http.get(UPLOAD).status_code == 405


def upload_head(keys: dict[str, str], length: int) -> bytes:
    return (
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %b\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        b"Content-Length: %d\r\n\r\n" % (UPLOAD.encode(), keys["alice"].encode(), length)
    )


def test_an_upload_that_is_broken_off_leaves_nothing(server: ServerProcess, keys: dict[str, str], folder: Path) -> None:
    with Connection(server.url) as connection:
        connection.send(upload_head(keys, 10 * MIB) + FORM + b"x" * (2 * MIB + 100))
        wait_for(lambda: open_uploads(folder) == 1)
    wait_for(lambda: open_uploads(folder) == 0)


def test_a_client_that_sends_too_slowly_gets_408(server: ServerProcess, keys: dict[str, str], folder: Path) -> None:
    with Connection(server.url) as connection:
        connection.send(upload_head(keys, 10 * MIB) + FORM + b"x" * MIB)
        response = connection.read_response()
        assert response is not None
        assert (response.status, response.error["code"]) == (408, "DEADLINE_EXCEEDED")
    assert open_uploads(folder) == 0


def test_many_uploads_at_once_are_all_complete(http: httpx2.Client) -> None:
    contents = [os.urandom(300_000 + 100_000 * number) for number in range(12)]
    with ThreadPoolExecutor(12) as threads:
        responses = list(threads.map(lambda data: upload(http, "a.bin", data), contents))
    assert [each.json()["result"]["sha256"] for each in responses] == [
        hashlib.sha256(data).hexdigest() for data in contents
    ]
    assert len({each.json()["result"]["temp_file_id"] for each in responses}) == 12


def write(http: httpx2.Client, uri: str, content: str) -> None:
    assert http.post("/api/v1/content/write", json={"uri": uri, "content": content}).status_code == 200


def download(http: httpx2.Client, uri: str, **headers: str) -> httpx2.Response:
    return http.get(DOWNLOAD, params={"uri": uri, "profile": "0"}, headers=headers)


def test_a_download_has_the_bytes_and_safe_headers(http: httpx2.Client) -> None:
    uri, text = "viking://resources/web/Seite ü%2Fx.html", "<script>alert('ß')</script>\r\n" * 50_000
    write(http, uri, "older")
    write(http, uri, text)
    response = download(http, uri)
    assert response.status_code == 200
    assert response.content == text.encode()
    assert response.headers["content-length"] == str(len(text.encode()))
    assert response.headers["content-type"] == "text/html"
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''Seite%20%C3%BC%2Fx.html"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in response.headers["content-security-policy"]
    assert response.headers["etag"] == '"2"'
    assert http.get(DOWNLOAD, params={"uri": uri, "version": "1"}).content == b"older"


def test_a_range_of_a_file_can_be_downloaded(http: httpx2.Client) -> None:
    uri, text = "viking://resources/range.txt", "".join(f"{number:07}\n" for number in range(300_000))
    write(http, uri, text)
    size = len(text)
    for asked, start, end in (
        ("bytes=0-0", 0, 1),
        (f"bytes={MIB - 3}-{MIB + 2}", MIB - 3, MIB + 3),
        (f"bytes={2 * MIB}-", 2 * MIB, size),
        ("bytes=-5", size - 5, size),
        (f"bytes=10-{size + 5}", 10, size),
    ):
        response = download(http, uri, Range=asked)
        assert response.status_code == 206
        assert response.text == text[start:end]
        assert response.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
    for ignored in ({"Range": "lines=1-2"}, {"Range": "bytes=1-2,4-5"}, {"Range": "bytes=0-1", "If-Range": '"9"'}):
        assert download(http, uri, **ignored).status_code == 200
    assert download(http, uri, **{"Range": "bytes=0-1", "If-Range": '"1"'}).text == text[:2]
    beyond = download(http, uri, Range=f"bytes={size}-")
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{size}")


def test_an_empty_file_and_a_view_can_be_downloaded(http: httpx2.Client) -> None:
    write(http, "viking://resources/empty.md", "")
    assert download(http, "viking://resources/empty.md").content == b""
    for number in range(6):
        body = {"role": "user", "content": f"{number} " + "ü" * 300_000}
        assert http.post("/api/v1/sessions/long/messages", json=body).status_code == 200
    view = "viking://session/long/messages.jsonl"
    text = http.get("/api/v1/content/read", params={"uri": view}).json()["result"]
    assert download(http, view, Range="bytes=0-1").text == text
    assert download(http, view).headers["content-disposition"] == "attachment; filename*=UTF-8''messages.jsonl"


def test_what_cannot_be_downloaded_is_an_error_with_its_reason(http: httpx2.Client, keys: dict[str, str]) -> None:
    write(http, "viking://user/alice/resources/diary.md", "private")
    assert download(http, "viking://user/alice/resources/diary.md").status_code == 200
    bob = {"X-API-Key": keys["bob"]}
    assert download(http, "viking://user/alice/resources/diary.md", **bob).status_code in {403, 404}
    assert download(http, "viking://resources/missing.md").status_code == 404
    assert download(http, "viking://resources").status_code == 412
    assert download(http, "http://example.com").status_code == 400
    assert http.get(DOWNLOAD).json()["error"]["details"]["field"] == "uri"


def test_a_batch_with_an_unknown_field_is_refused(http: httpx2.Client) -> None:
    operation = {"uri": "viking://resources/batch.md", "content": "x"}
    body = {"root_uri": "viking://resources", "operations": [operation], "wait": False}
    assert http.post("/api/v1/content/batch-write", json=body).status_code == 200
    for wrong in ({**body, "colour": "red"}, {**body, "operations": [{**operation, "colour": "red"}]}):
        response = http.post("/api/v1/content/batch-write", json=wrong)
        assert response.status_code == 400
        assert "colour" in response.json()["error"]["message"]
    missing = {**body, "root_uri": "viking://resources/nothing/here"}
    assert http.post("/api/v1/content/batch-write", json=missing).status_code == 404


def test_a_client_that_does_not_read_its_download_holds_little(
    http: httpx2.Client, server: ServerProcess, keys: dict[str, str]
) -> None:
    write(http, "viking://resources/unread.txt", "0123456789abcdef" * (8 * MIB // 16))
    assert len(download(http, "viking://resources/unread.txt").content) == 8 * MIB
    before = peak_memory(server)
    path = f"{DOWNLOAD}?uri=viking://resources/unread.txt"
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {keys['alice']}\r\n\r\n".encode()
    connections = [Connection(server.url, receive_buffer=4096) for _ in range(10)]
    try:
        for connection in connections:
            connection.send(head)
        for connection in connections:
            assert connection.read(1_000).startswith(b"HTTP/1.1 200")
        assert peak_memory(server) - before < 60 * MIB
    finally:
        for connection in connections:
            with suppress(OSError):
                connection.close()


def test_a_batch_of_appends_to_large_files_is_refused_before_it_holds_the_database(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        uri = "viking://resources/log/large.txt"
        client.write(uri, "x" * 15_000_000)
        with pytest.raises(TooLargeError, match="use several batches"):
            client.batch_write("viking://resources/log", [{"uri": uri, "content": "y", "mode": "append"}] * 100)
        assert client.stat(uri).version == 1
