"""Uploads of a server that is killed: nothing of them is visible, and their chunks are deleted after they expire."""

import threading
from collections.abc import Iterator

import httpx2

import holdfast
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.store.database import EVERY_ACCOUNT
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.server import running_server

MIB = 1024 * 1024
HEADERS = {"Content-Type": "multipart/form-data; boundary=b"}
FORM = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'


def test_a_server_that_is_killed_during_uploads_leaves_nothing_visible(target: str) -> None:
    engine = Engine(open_database(target, Settings()))
    killed = threading.Event()

    def count(table: str) -> int:
        return int(engine.db.read(EVERY_ACCOUNT, lambda tx: tx.all(f"SELECT COUNT(*) FROM {table}"))[0][0])

    def endless_body() -> Iterator[bytes]:
        yield FORM
        while not killed.is_set():
            yield b"x" * 100_000

    def send(url: str) -> None:
        try:
            httpx2.post(f"{url}/api/v1/resources/temp_upload", content=endless_body(), headers=HEADERS, timeout=20)
        except httpx2.TransportError:
            return

    with running_server(target) as server:
        threads = [threading.Thread(target=send, args=(server.url,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_for(lambda: count("file_chunks") > 6)
        server.kill()
        killed.set()
        for thread in threads:
            thread.join()
    assert (count("uploads"), count("file_blobs"), count("nodes")) == (3, 0, 0)
    with running_server(target) as server, holdfast.connect(server.url) as client:
        assert client.ls("viking://resources") == []
    engine.db.write(EVERY_ACCOUNT, lambda tx: tx.execute("UPDATE uploads SET expires_at = 1"))
    engine.delete_expired()
    assert (count("uploads"), count("file_chunks")) == (0, 0)
    engine.close()
