"""The fetcher reaches public addresses only, whatever a page or a name server answers; and everything is limited."""

import gzip
import ipaddress
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.config import Settings
from holdfast.engine.resources.fetching import addresses, web
from holdfast.errors import (
    FailedPreconditionError,
    HoldfastError,
    InvalidArgumentError,
    PermissionDeniedError,
    TooLargeError,
)

LIMIT = 200_000
PAGE = b"<html><head><title>Tides</title></head><body><h1>Tides</h1><p>High water at noon.</p></body></html>"
PRIVATE = (
    *("127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "0.1.2.3"),
    *("100.64.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.0.8", "198.18.0.1", "192.0.2.7"),
    *("::1", "::", "fe80::1", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1", "::ffff:127.0.0.1"),
    *("::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::7f00:1"),
    *("2002:7f00:1::", "::127.0.0.1", "fec0::1"),
)


class Site(BaseHTTPRequestHandler):
    """A web site with pages that behave badly."""

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers["Host"]))  # type: ignore[attr-defined]
        name = self.path.partition("?")[0]
        if name.startswith("/status/"):
            self._send(int(name.rpartition("/")[2]), b"no")
        elif name.startswith("/to/"):
            self._send(302, b"", Location=self.path.removeprefix("/to/"))
        elif name.startswith("/loop"):
            self._send(302, b"", Location=f"{name}x")
        elif name == "/bomb":
            self._send(200, gzip.compress(b"\0" * (50 * LIMIT)), **{"Content-Encoding": "gzip"})
        elif name == "/endless":
            self._endless()
        elif name == "/slow":
            time.sleep(3)
        elif name in {"/trickle/head", "/trickle/body"}:
            self._trickle(name)
        elif name == "/film":
            self._send(200, b"x", **{"Content-Type": "video/mp4"})
        else:
            self._send(200, self.server.page, **{"Content-Type": "text/html; charset=utf-8"})  # type: ignore[attr-defined]

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for header, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)

    def _endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x" * 10_000)
        except OSError:
            return

    def _trickle(self, name: str) -> None:
        """Send an answer a byte at a time."""
        head = "HTTP/1.1 200 OK\r\n"
        self.wfile.write(f"{head}Content-Length: 1000\r\n\r\n".encode() if name.endswith("body") else head.encode())
        try:
            for _ in range(50):
                self.wfile.write(b"x")
                time.sleep(0.1)
        except OSError:
            return

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.requests, server.page = [], PAGE  # type: ignore[attr-defined]
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def settings_for(site: ThreadingHTTPServer, **values: Any) -> Settings:
    host = f"127.0.0.1:{site.server_port}"
    defaults = {"fetch_urls": True, "allowed_fetch_hosts": host, "max_fetch_bytes": LIMIT, "fetch_seconds": 1.0}
    return Settings(**{**defaults, **values})


def fetch(url: str, settings: Settings) -> tuple[str, bytes]:
    with web.fetched(url, settings) as page:
        page.file.seek(0)
        return page.name, page.file.read()


def url_of(site: ThreadingHTTPServer, path: str) -> str:
    return f"http://127.0.0.1:{site.server_port}{path}"


@pytest.mark.parametrize("address", PRIVATE)
def test_no_private_or_reserved_address_is_public(address: str) -> None:
    assert not addresses.is_public(ipaddress.ip_address(address))


def test_public_addresses_are_public() -> None:
    for address in ("93.184.215.14", "2606:4700::1111", "64:ff9b::5db8:d70e", "::ffff:8.8.8.8"):
        assert addresses.is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "[::1]", "[::ffff:7f00:1]"],
)
def test_every_form_of_a_loopback_address_is_refused(site: ThreadingHTTPServer, host: str) -> None:
    settings = settings_for(site, allowed_fetch_hosts="")
    with pytest.raises(PermissionDeniedError):
        fetch(f"http://{host}:{site.server_port}/", settings)
    assert site.requests == []  # type: ignore[attr-defined]


def test_a_host_with_one_private_address_among_public_ones_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in ("93.184.215.14", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: rows)
    with pytest.raises(PermissionDeniedError, match=r"10\.0\.0\.1"):
        addresses.resolve("http://mixed.example/", Settings())


def test_the_name_is_looked_up_once_and_the_connection_goes_to_that_address(
    site: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that answers with a public address first and a private one later changes nothing."""
    answers = iter(["127.0.0.1", "10.0.0.1", "10.0.0.1"])
    looked_up: list[str] = []

    def answer(host: str, port: int, *_: Any, **_options: Any) -> Any:
        looked_up.append(host)
        address = host if host[0].isdigit() else next(answers)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    settings = settings_for(site, allowed_fetch_hosts=f"rebinding.example:{site.server_port}")
    name, _ = fetch(f"http://rebinding.example:{site.server_port}/page", settings)
    assert name == "page.html"
    assert looked_up.count("rebinding.example") == 1
    assert site.requests == [("/page", f"rebinding.example:{site.server_port}")]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:9/", "http://169.254.169.254/latest/meta-data", "http://[::1]/", "http://0x7f.1/"]
)
def test_a_redirect_to_a_private_address_is_refused(site: ThreadingHTTPServer, target: str) -> None:
    with pytest.raises(PermissionDeniedError):
        fetch(url_of(site, f"/to/{target}"), settings_for(site))


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://x/", "ftp://x/", "javascript:alert(1)"])
def test_a_redirect_to_another_protocol_is_refused(site: ThreadingHTTPServer, target: str) -> None:
    with pytest.raises(InvalidArgumentError):
        fetch(url_of(site, f"/to/{target}"), settings_for(site))


def test_redirects_are_followed_five_times(site: ThreadingHTTPServer) -> None:
    name, data = fetch(url_of(site, "/to/" * 5 + "/page.html"), settings_for(site))
    assert (name, data) == ("page.html", PAGE)
    with pytest.raises(FailedPreconditionError, match="redirects more than 5 times"):
        fetch(url_of(site, "/loop"), settings_for(site))


@pytest.mark.parametrize("path", ["/bomb", "/endless"])
def test_a_body_ends_at_the_limit_also_after_decompression(site: ThreadingHTTPServer, path: str) -> None:
    with pytest.raises(TooLargeError, match="max_fetch_bytes"):
        fetch(url_of(site, path), settings_for(site))


@pytest.mark.parametrize("path", ["/slow", "/trickle/head", "/trickle/body"])
def test_a_slow_site_ends_at_the_limit(site: ThreadingHTTPServer, path: str) -> None:
    begun = time.monotonic()
    with pytest.raises(FailedPreconditionError, match="fetch_seconds"):
        fetch(url_of(site, path), settings_for(site, fetch_seconds=0.3))
    assert time.monotonic() - begun < 2.5


@pytest.mark.parametrize("status", [403, 404, 500])
def test_an_error_says_what_the_site_answered(site: ThreadingHTTPServer, status: int) -> None:
    with pytest.raises(HoldfastError, match=f"status {status}"):
        fetch(url_of(site, f"/status/{status}"), settings_for(site))
    with pytest.raises(FailedPreconditionError, match="video/mp4"):
        fetch(url_of(site, "/film"), settings_for(site))


def test_a_host_without_an_address_is_named() -> None:
    with pytest.raises(FailedPreconditionError, match=r"no-such-host.invalid.*DNS"):
        addresses.resolve("http://no-such-host.invalid/", Settings())
    for url in ("http://user:secret@docs.example/", "http://", "https:///x", "ftp://docs.example", "http://a b/"):
        with pytest.raises(InvalidArgumentError):
            addresses.resolve(url, Settings())


def test_a_page_is_added_and_watched_and_only_a_change_makes_a_version(
    site: ThreadingHTTPServer, database_target: str
) -> None:
    uri = "viking://resources/tides"
    with holdfast.connect(database_target, settings=settings_for(site, worker_poll_seconds=0.02)) as client:
        added = client.add_resource(url_of(site, "/tides.html"), to=uri, watch_interval=1 / 60, wait=True)
        assert (added.root_uri, added.added) == (uri, 1)
        file = f"{uri}/tides.html"
        assert "High water at noon" in client.read(file)
        (watch,) = client.list_watches().tasks
        assert (watch.to_uri, watch.path, watch.is_active) == (uri, url_of(site, "/tides.html"), True)
        wait_for_runs(client, uri, 2)
        assert [each.version for each in client.history(file).versions] == [1]
        site.page = PAGE.replace(b"noon", b"dusk")  # type: ignore[attr-defined]
        wait_until(lambda: "dusk" in client.read(file))
        assert [each.version for each in client.history(file).versions] == [2, 1]
        client.update_watch(uri, is_active=False, reason="for the pilots")
        paused = client.get_watch(watch.task_id)
        assert (paused.is_active, paused.next_execution_time, paused.reason) == (False, None, "for the pilots")
        assert client.list_watches(active_only=True).total == 0
        triggered = client.trigger_watch(uri)
        assert client.wait_for_task(triggered.task_id).result["unchanged"] == 1  # type: ignore[index]
        client.rm(uri, recursive=True)
        client.update_watch(watch.task_id, is_active=True, watch_interval=1 / 60)
        wait_until(lambda: client.list_watches().total == 0)


def test_a_failure_of_a_watch_is_shown_and_the_schedule_goes_on(site: ThreadingHTTPServer) -> None:
    uri = "viking://resources/gone"
    with holdfast.connect(":memory:", settings=settings_for(site, worker_poll_seconds=0.02)) as client:
        started = client.add_resource(url_of(site, "/status/404"), to=uri, watch_interval=1 / 60)
        assert client.wait_for_task(started.task_id).status == "failed"
        wait_for_runs(client, uri, 2)
        watch = client.get_watch(uri)
        assert watch.is_active
        wait_until(lambda: "status 404" in (client.get_watch(uri).last_error or ""))
        client.delete_watch(uri)
        assert client.list_watches().total == 0


@pytest.fixture
def database_target(tmp_path: Path) -> str:
    return str(tmp_path / "watched.db")


def wait_until(is_so: Any) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_for_runs(client: Any, uri: str, count: int) -> None:
    """Wait until a watch has started so many further tasks."""
    seen: set[str] = set()

    def has_run() -> bool:
        seen.add(client.get_watch(uri).last_task_id)
        return len(seen) > count

    wait_until(has_run)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs the program git")
def test_a_repository_is_cloned_without_its_history_hooks_or_links(tmp_path: Path, monkeypatch: Any) -> None:
    git = pytest.importorskip("holdfast.engine.resources.fetching.git")
    source = tmp_path / "source"
    source.mkdir()
    (source / "readme.md").write_text("# Repository")
    (source / "link").symlink_to("/etc/passwd")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *command], cwd=source, check=True, capture_output=True)
    settings = Settings(fetch_git=True, fetch_seconds=10)
    with pytest.raises(PermissionDeniedError), git.cloned("http://127.0.0.1:9/a.git", settings):
        pass
    monkeypatch.setattr(git, "resolve", lambda *_: addresses.Destination("http", "x", 80, "127.0.0.1"))
    with pytest.raises(FailedPreconditionError, match="git cannot clone"), git.cloned(f"file://{source}", settings):
        pass
    monkeypatch.setattr(git, "_OPTIONS", (*git._OPTIONS, "protocol.file.allow=always"))
    with git.cloned(f"file://{source}", settings) as folder:
        assert sorted(path.name for path in Path(folder).iterdir()) == ["link", "readme.md"]
        assert not (Path(folder) / "link").is_symlink()
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with (
        pytest.raises(FailedPreconditionError, match="git is missing"),
        git.cloned("https://x.example/a.git", settings),
    ):
        pass
