"""Zip files are opened with limits: the number of entries is known before their list is read."""

import io
import struct
import zipfile
from collections.abc import Iterator
from typing import BinaryIO
from zlib import error as ZlibError  # noqa: N812 - as the module calls it

from holdfast.documents.parsed import UnreadableError

MAX_ENTRIES = 50_000
MAX_DIRECTORY_BYTES = 16 << 20
"""The longest list of entries."""
MAX_RATIO = 200
"""How many times as large as its compressed form an entry may be. Repetitive tables reach about 100."""
MIN_BOMB_BYTES = 4 << 20
"""A smaller entry may have any ratio."""
CHUNK_BYTES = 1 << 20
_SIGNATURE = b"PK"
_END = b"PK\x05\x06"
_END_64 = b"PK\x06\x06"
_LOCATOR_64 = b"PK\x06\x07"
_ENTRY = b"PK\x01\x02"
_END_BYTES, _LOCATOR_BYTES, _END_64_BYTES = 22, 20, 56
_MAX_COMMENT_BYTES = 1 << 16
_FLAG_ENCRYPTED = 0x1
READABLE_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
DAMAGE = (zipfile.BadZipFile, ZlibError, EOFError, OSError, ValueError, NotImplementedError, struct.error)
"""What a damaged zip file raises."""


def open_zip(
    file: BinaryIO, max_entries: int = MAX_ENTRIES, max_directory_bytes: int = MAX_DIRECTORY_BYTES
) -> zipfile.ZipFile:
    """Open a zip file. Raises `UnreadableError` if it is damaged or has too many entries."""
    _check_directory(file, max_entries, max_directory_bytes)
    try:
        return zipfile.ZipFile(file)
    except DAMAGE:
        raise UnreadableError("is a damaged zip archive; make it again") from None


def _check_directory(file: BinaryIO, max_entries: int, max_directory_bytes: int) -> None:
    """Check the size of the list of entries. `zipfile` reads it whole, and makes an object for each entry."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _END_BYTES - _MAX_COMMENT_BYTES - _LOCATOR_BYTES - _END_64_BYTES))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        file.seek(0)
        if file.read(len(_SIGNATURE)) != _SIGNATURE:
            raise UnreadableError("is not a zip archive; check that it is the right file")
        raise UnreadableError("is a zip archive whose end is missing; it was not copied completely")
    (directory_bytes,) = struct.unpack_from("<I", tail, at + 12)
    start_64 = at - _LOCATOR_BYTES - _END_64_BYTES
    ends = at
    if start_64 >= 0 and tail.startswith(_LOCATOR_64, at - _LOCATOR_BYTES) and tail.startswith(_END_64, start_64):
        (directory_bytes,) = struct.unpack_from("<Q", tail, start_64 + 40)
        ends = start_64
    end = size - len(tail) + ends
    if directory_bytes > max_directory_bytes:
        raise UnreadableError(
            f"is a zip archive whose list of entries has {directory_bytes} bytes, more than {max_directory_bytes};"
            " split it into smaller archives"
        )
    file.seek(max(0, end - directory_bytes))
    count = file.read(directory_bytes).count(_ENTRY)
    if count > max_entries:
        raise UnreadableError(
            f"is a zip archive with {count} entries, more than {max_entries}; split it into smaller archives"
        )
    file.seek(0)


def entry_problem(info: zipfile.ZipInfo, max_bytes: int) -> str:
    """Return why the content of an entry cannot be read, by what the archive says about it."""
    if info.flag_bits & _FLAG_ENCRYPTED:
        return "is encrypted; make the archive without a password"
    if info.compress_type not in READABLE_METHODS:
        return f"is compressed by method {info.compress_type}; use deflate, as usual"
    if info.file_size > max_bytes:
        return f"has {info.file_size} bytes uncompressed, more than {max_bytes}"
    if info.file_size > MIN_BOMB_BYTES and info.file_size > MAX_RATIO * max(1, info.compress_size):
        return f"becomes more than {MAX_RATIO} times as large when it is uncompressed, as a zip bomb does"
    return ""


def read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Return the content of an entry in chunks. It ends at the size that the archive states.

    Raises `UnreadableError` if the content is damaged: it has another size or checksum than stated.
    """
    try:
        with archive.open(info) as content:
            while chunk := content.read(CHUNK_BYTES):
                yield chunk
    except (*DAMAGE, RuntimeError):
        raise UnreadableError("is damaged: its size or checksum is wrong; make the archive again") from None
