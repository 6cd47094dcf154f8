"""Files on the disk of a client: what is downloaded to, and what is uploaded."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from holdfast.errors import AlreadyExistsError, ConflictError, InvalidArgumentError, UnavailableError
from holdfast.model.tree.uploads import FileBytes

ProgressCallback = Callable[[int, int, str], None]
"""Called with the number of bytes done, of all bytes, and the name of the file."""


def ignore_progress(_done: int, _total: int, _name: str) -> None:
    pass


class DownloadedFile:
    """Writes a file atomically: after an error, `target` is as before."""

    def __init__(self, target: Path, progress: ProgressCallback | None, *, overwrite: bool) -> None:
        self._target = target
        self._partial = target.with_name(f".{target.name}.partial")
        self._progress = progress or ignore_progress
        self._overwrite = overwrite
        self._first: FileBytes | None = None
        self.size = 0

    def __enter__(self) -> Self:
        if self._target.is_dir():
            raise InvalidArgumentError("target", f"{str(self._target)!r} is a folder; name a file in it")
        if self._target.exists() and not self._overwrite:
            raise AlreadyExistsError(
                f"{str(self._target)!r} exists already; name another file, or allow to overwrite it",
                resource=str(self._target),
                type="file",
            )
        try:
            self._opened: BinaryIO = self._partial.open("wb")
        except OSError as error:
            raise InvalidArgumentError(
                "target", f"{str(self._target)!r} cannot be written: {error.strerror}; name another"
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._opened.flush()
                os.fsync(self._opened.fileno())
            self._opened.close()
            if kind is None:
                self._partial.replace(self._target)
        except OSError as error:
            raise self._disk_error(error) from error
        finally:
            with suppress(OSError):
                self._opened.close()
            self._partial.unlink(missing_ok=True)

    def add(self, part: FileBytes) -> None:
        first = self._first = self._first or part
        if (part.sha256, part.size) != (first.sha256, first.size):
            raise ConflictError(f"{part.uri} has changed during the download; download it again", resource=part.uri)
        self.write(part.data, part.size)

    def write(self, data: bytes, total: int = 0) -> None:
        """Add bytes. `total` is the size of the whole file, if it is known."""
        try:
            self._opened.write(data)
        except OSError as error:
            raise self._disk_error(error) from error
        self.size += len(data)
        self._progress(self.size, max(total, self.size), self._target.name)

    def _disk_error(self, error: OSError) -> UnavailableError:
        return UnavailableError(
            f"{str(self._target)!r} cannot be written: {error.strerror}; free some space and try again",
            service="disk",
            reason=type(error).__name__,
        )


def open_for_upload(path: Path) -> BinaryIO:
    if path.exists() and not path.is_file():  # to open a named pipe could take for ever, and to read a device, too
        raise InvalidArgumentError("path", f"{str(path)!r} is a folder, a pipe or a device; name a regular file")
    try:
        return path.open("rb")
    except OSError as error:
        raise InvalidArgumentError(
            "path", f"{str(path)!r} cannot be read: {error.strerror}; name a file that exists"
        ) from None
