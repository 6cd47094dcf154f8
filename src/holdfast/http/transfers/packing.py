"""The export of a pack: a thread writes it to a temporary file, which is then sent in parts."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar
from urllib.parse import quote

from starlette.types import Receive, Send

from holdfast.client.sync.tree.packs import Packs
from holdfast.engine import Engine
from holdfast.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError
from holdfast.http import responses
from holdfast.http.executor import Requester
from holdfast.http.limits import Disconnected
from holdfast.http.server_state import ServerState
from holdfast.http.streaming.response_stream import wait_for_disconnect
from holdfast.http.transfers.downloading import SAFE_HEADERS
from holdfast.http.transfers.request import TransferRequest
from holdfast.model.identity import Origin, Principal
from holdfast.model.system import Backup
from holdfast.model.tree.packs import BACKUP_NAME, SUFFIX
from holdfast.model.uris import parse_uri
from holdfast.ops.table import Operation, fields_of, validate_operation
from holdfast.ops.tree.packs import ListPackNodes

R = TypeVar("R")
EXPORT_SECONDS = 600.0
"""How long the writing of a pack may take."""
PART_BYTES = 1024 * 1024
OK = 200


class CallerTransport:
    """Calls the engine of the server for the caller of a request. It does not own the engine."""

    def __init__(self, engine: Engine, principal: Principal, origin: Origin) -> None:
        self._engine = engine
        self._principal = principal
        self._origin = origin

    def call(self, op: Operation[R]) -> R:
        checked = self._engine.check(self._principal, type(op), fields_of(op), origin=self._origin)
        return self._engine.prepare(checked).run()

    def back_up(self, target: Path, *, overwrite: bool) -> Backup:
        raise FailedPreconditionError(f"a server writes no backup to {target} for its clients (overwrite={overwrite})")

    def close(self) -> None:
        pass


class PackExporting:
    """Exports one pack."""

    def __init__(self, state: ServerState, request: TransferRequest) -> None:
        self._state = state
        self._request = request

    async def run(self, receive: Receive, send: Send) -> None:
        uri = self._uri()
        name = BACKUP_NAME if uri is None else parse_uri(uri)[-1:]
        disconnected = asyncio.create_task(wait_for_disconnect(receive))
        try:
            with _temporary_folder() as folder:
                target = folder / "pack"
                await self._write(uri, target, disconnected)
                with target.open("rb") as file:
                    await self._send(file, target.stat().st_size, "".join(name), disconnected, send)
        finally:
            disconnected.cancel()

    def _uri(self) -> str | None:
        """Return what to export. None for a backup."""
        fields = self._request.query
        if not isinstance(fields.get("include_vectors", False), bool):
            raise InvalidArgumentError("include_vectors", "is not true or false; leave it out")
        if self._request.route.transfer == "backup":
            return None
        given: dict[str, Any] = {name: fields[name] for name in ("uri",) if name in fields}
        op = validate_operation(ListPackNodes, given)
        parse_uri(op.uri)
        return op.uri

    async def _write(self, uri: str | None, target: Path, disconnected: "asyncio.Task[Any]") -> None:
        """Write the pack, unless the client disconnects before it is complete."""
        request = self._request
        requester = Requester.of(request.principal, request.record.cancellation)
        packs = Packs(CallerTransport(self._state.engine, request.principal, request.origin))
        write = partial(packs.backup_pack, target) if uri is None else partial(packs.export_pack, uri, target)
        writing = asyncio.ensure_future(self._state.executor.export(write, requester))
        await asyncio.wait({writing, disconnected}, timeout=EXPORT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            await writing
            return
        requester.cancellation.is_requested = True
        await asyncio.wait({writing})  # the thread still uses the folder
        if disconnected.done():
            raise Disconnected
        _raise_too_slow()

    async def _send(self, file: BinaryIO, size: int, name: str, disconnected: "asyncio.Task[Any]", send: Send) -> None:
        principal = self._request.principal
        user = (principal.account_id, principal.user_id)
        with self._state.responses_memory.new_reservation(principal) as reservation:
            await reservation.reserve(min(size, PART_BYTES))
            await send({"type": "http.response.start", "status": OK, "headers": _headers(name, size)})
            while part := await self._state.executor.in_thread(partial(file.read, PART_BYTES), user):
                await send({"type": "http.response.body", "body": part, "more_body": True})
                # Returns when the client has received the part before, except for a small rest.
                await send({"type": "http.response.body", "body": b"", "more_body": True})
                if disconnected.done():
                    return
            await send({"type": "http.response.body", "body": b""})


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="holdfast-pack-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _headers(name: str, size: int) -> list[responses.Header]:
    encoded = quote(f"{name}{SUFFIX}", safe="").encode()
    plain = "".join(each for each in name if each.isascii() and each.isprintable() and each not in '"\\') or "pack"
    return [
        (b"content-type", b"application/zip"),
        (b"content-length", b"%d" % size),
        (
            b"content-disposition",
            f"attachment; filename=\"{plain}{SUFFIX}\"; filename*=UTF-8''".encode() + encoded,
        ),
        *SAFE_HEADERS,
    ]


def _raise_too_slow() -> NoReturn:
    raise DeadlineExceededError(f"the pack was not written within {EXPORT_SECONDS:g} s; export a part of the folder")
