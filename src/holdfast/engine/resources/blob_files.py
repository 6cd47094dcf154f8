"""A blob as a file that can be read at any position. Only some of its chunks are in memory."""

import io
from collections.abc import Callable, Iterator

from holdfast.errors import FailedPreconditionError
from holdfast.store.database import Tx
from holdfast.store.tables.tree import blobs

CHUNKS_HELD = 4


class BlobFile(io.RawIOBase):
    """The bytes of a blob. Each chunk is read in a transaction of its own."""

    def __init__(self, read: Callable[[Callable[[Tx], bytes | None]], bytes | None], digest: str, size: int) -> None:
        super().__init__()
        self._read = read
        self._digest = digest
        self._size = size
        self._position = 0
        self._chunks: dict[int, bytes] = {}

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        left = self._size - self._position if size is None or size < 0 else size
        pieces: list[bytes] = []
        while left > 0 and self._position < self._size:
            number, skip = divmod(self._position, blobs.CHUNK_BYTES)
            piece = self._chunk(number)[skip : skip + left]
            pieces.append(piece)
            self._position += len(piece)
            left -= len(piece)
        return b"".join(pieces)

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes, in chunks."""
        self.seek(0)
        while chunk := self.read(blobs.CHUNK_BYTES):
            yield chunk

    def _chunk(self, number: int) -> bytes:
        if number not in self._chunks:
            while len(self._chunks) >= CHUNKS_HELD:
                self._chunks.pop(next(iter(self._chunks)))
            chunk = self._read(lambda tx: next(blobs.read_chunks(tx, self._digest, number), None))
            if not chunk:
                raise FailedPreconditionError(
                    "the uploaded bytes were deleted before they were used; upload them again"
                )
            self._chunks[number] = chunk
        return self._chunks[number]
