"""A multipart upload: the file is stored part by part while it is received."""

from contextlib import suppress
from typing import Any, TypeVar

from starlette.types import Receive, Send

from holdfast.errors import HoldfastError, TooSlowError
from holdfast.http import responses
from holdfast.http.limits import Disconnected
from holdfast.http.server_state import ServerState
from holdfast.http.transfers.multipart import MultipartFile
from holdfast.http.transfers.request import TransferRequest
from holdfast.model.tree.uploads import TempFile
from holdfast.ops.table import Operation
from holdfast.ops.tree.uploads import MAX_NAME_CHARS, PART_BYTES, AppendUpload, CancelUpload, FinishUpload, StartUpload

R = TypeVar("R")
DEFAULT_NAME = "file"


class Uploading:
    """Receives one file, and calls the operations of uploads. Each part has the time of a request."""

    def __init__(self, state: ServerState, request: TransferRequest) -> None:
        self._state = state
        self._request = request
        self._upload_id: str | None = None

    async def run(self, receive: Receive, send: Send) -> None:
        file = MultipartFile(receive, self._request.headers, self._state.settings.max_upload_bytes)
        try:
            stored = await self._store(file)
        except TimeoutError:
            await self._cancel()
            seconds = self._state.deadlines.seconds
            raise TooSlowError(
                f"{PART_BYTES:,} bytes of the file were not received and stored within {seconds:g} s;"
                " nothing was kept, send it again"
            ) from None
        except (HoldfastError, Disconnected):
            await self._cancel()
            raise
        record = self._request.record
        end = responses.envelope_end(self._request.route, b"", record.seconds(), None)
        await responses.send_success(responses.EncodedResult(responses.encode_json(stored), b"", []), end, send)

    async def _store(self, file: MultipartFile) -> TempFile:
        state = self._state
        with state.deadlines:
            name = _base_name(await file.read_name())
            started = await self._call(StartUpload, name=name)
            self._upload_id = upload_id = started.upload_id
        number, part = 0, b"begin"
        while part:
            with state.deadlines, state.body_memory.buffer() as memory:
                part = await file.read_part(PART_BYTES, memory)
                if part:
                    await self._call(AppendUpload, upload_id=upload_id, number=number, data=part)
                    number += 1
        with state.deadlines:
            return await self._call(FinishUpload, upload_id=upload_id)

    async def _call(self, cls: type[Operation[R]], **fields: Any) -> R:
        request = self._request
        return await self._state.executor.call(
            request.principal,
            cls,
            fields,
            strict=True,
            body_size=0,  # the fields need no parsing
            cancellation=request.record.cancellation,
            origin=request.origin,
        )

    async def _cancel(self) -> None:
        """Let the background delete what was received. If that fails, it expires after a day."""
        if self._upload_id is not None:
            fields = {"upload_id": self._upload_id}
            with suppress(HoldfastError):
                await self._state.executor.call(
                    self._request.principal, CancelUpload, fields, strict=True, body_size=0, origin=self._request.origin
                )


def _base_name(name: str) -> str:
    r"""Return the name of a file without folders and control characters, and not longer than a name may be.

    >>> _base_name("C:\\notes\\plan.md"), _base_name("../../etc/passwd"), _base_name("")
    ('plan.md', 'passwd', 'file')
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(character for character in last if character.isprintable())[-MAX_NAME_CHARS:] or DEFAULT_NAME
