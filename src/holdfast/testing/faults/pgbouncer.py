"""PgBouncer in transaction mode: each transaction may use another connection to the server."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
TIMEOUT_SECONDS = 20.0
PORT = 6432
CONFIGURATION = """
[databases]
* = host={host}
[pgbouncer]
pool_mode = transaction
default_pool_size = {connections}
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users.txt
logfile = {folder}/log.txt
"""


@contextmanager
def pgbouncer_to(url: str, *, connections: int = 3) -> Iterator[str]:
    """Run PgBouncer before the server of `url`, with few connections to it. Yield the URL of PgBouncer."""
    assert PROGRAM is not None
    parts = urlsplit(url)
    with tempfile.TemporaryDirectory(prefix="holdfast-bouncer-") as name:
        folder = Path(name)
        host = Path(parse_qs(parts.query)["host"][0])
        (folder / "users.txt").write_text(f'"{parts.username}" ""\n')
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(CONFIGURATION.format(host=host, connections=connections, port=PORT, folder=folder))
        command = [PROGRAM, "--quiet", str(configuration)]
        if os.geteuid() == 0:  # it refuses to run as root; the owner of the server's socket may connect to it
            owner = host.stat().st_uid
            for path in (folder, *folder.iterdir()):
                os.chown(path, owner, -1)
            command[1:1] = ["--user", host.owner()]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            _wait_until_listening(folder / f".s.PGSQL.{PORT}", process)
            yield urlunsplit(parts._replace(query=f"host={folder}&port={PORT}"))
        finally:
            process.terminate()
            process.wait(TIMEOUT_SECONDS)


def _wait_until_listening(path: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"PgBouncer has ended with {process.returncode}")
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.connect(str(path))
            return
        time.sleep(0.02)
    raise AssertionError("PgBouncer does not listen")
