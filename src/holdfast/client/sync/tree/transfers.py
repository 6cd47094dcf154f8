"""Client methods that upload files, and download them as they are stored."""

from pathlib import Path

from holdfast.client.files import DownloadedFile, ProgressCallback, ignore_progress, open_for_upload
from holdfast.client.sync.transport import Transport
from holdfast.errors import ConflictError, TooLargeError
from holdfast.model.tree.files import position_after
from holdfast.model.tree.uploads import Downloaded, FileBytes, TempFile
from holdfast.ops.tree.files import ReadFile
from holdfast.ops.tree.uploads import PART_BYTES, AppendUpload, CancelUpload, FinishUpload, ReadBytes, StartUpload

TEXT_CHARS = 1_000_000
"""The characters of a view that are read at once."""


class Transfers:
    """Uploads and downloads."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def upload(
        self, path: str | Path, *, name: str | None = None, progress: ProgressCallback | None = None
    ) -> TempFile:
        """Upload a file in parts. The `temp_file_id` of the result can be used for a day.

        `progress` is called with the number of bytes sent, the number of all bytes, and the name of the file.
        """
        path = Path(path)
        show = progress or ignore_progress
        with open_for_upload(path) as file:
            total = path.stat().st_size
            upload = self._transport.call(StartUpload(name=name or path.name))
            while data := file.read(PART_BYTES):
                upload = self._transport.call(AppendUpload(upload_id=upload.upload_id, number=upload.parts, data=data))
                show(upload.size, max(total, upload.size), path.name)
        return self._transport.call(FinishUpload(upload_id=upload.upload_id))

    def cancel_upload(self, temp_file_id: str) -> None:
        """Delete an upload that is not needed any more."""
        self._transport.call(CancelUpload(upload_id=temp_file_id))

    def read_bytes(self, uri: str, *, version: int | None = None) -> bytes:
        """Return a whole file as it is stored. Use `download` for a large one."""
        part = self._transport.call(ReadBytes(uri=uri, version=version))
        found = bytearray(part.data)
        while len(found) < part.size:
            pinned = version if part.version == 0 else part.version
            following = self._transport.call(ReadBytes(uri=uri, offset=len(found), version=pinned))
            if (following.sha256, following.size) != (part.sha256, part.size):
                raise ConflictError(f"{uri} has changed while it was read; read it again", resource=uri)
            found += following.data
        return bytes(found)

    def download(
        self,
        uri: str,
        target: str | Path,
        *,
        version: int | None = None,
        overwrite: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Downloaded:
        """Write a file as it is stored to the file `target`.

        The target is complete, or it does not exist. `progress` is called with the number of bytes received, the number
        of all bytes, and the name of the target.
        """
        with DownloadedFile(Path(target), progress, overwrite=overwrite) as file:
            part = self._read_first(uri, version)
            if part is None:
                self._download_text(uri, version, file)
                return Downloaded(uri=uri, target=str(target), size=file.size)
            file.add(part)
            while file.size < part.size:
                file.add(self._transport.call(ReadBytes(uri=uri, offset=file.size, version=part.version)))
            return Downloaded(uri=uri, target=str(target), size=file.size)

    def _read_first(self, uri: str, version: int | None) -> FileBytes | None:
        """Return the first bytes of a file. None for a view that is longer: it is read as text."""
        try:
            part = self._transport.call(ReadBytes(uri=uri, version=version))
        except TooLargeError:
            return None
        return part if part.version or len(part.data) == part.size else None

    def _download_text(self, uri: str, version: int | None, file: DownloadedFile) -> None:
        line = char = 0
        while True:
            text = self._transport.call(
                ReadFile(uri=uri, offset=line, char_offset=char, char_limit=TEXT_CHARS, version=version)
            )
            file.write(text.encode())
            if len(text) < TEXT_CHARS:
                return
            line, char = position_after(text, line, char)
