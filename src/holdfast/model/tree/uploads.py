"""Uploads, and the bytes of files."""

from holdfast.model.base import WireStruct


class UploadProgress(WireStruct, frozen=True, kw_only=True):
    """An upload that is not complete."""

    upload_id: str
    size: int
    """How many bytes were received."""
    parts: int
    """How many parts were received. It is the number of the next part."""


class TempFile(WireStruct, frozen=True, kw_only=True):
    """A complete upload. It can be used for a day."""

    temp_file_id: str
    size: int
    sha256: str


class UploadCancelled(WireStruct, frozen=True, kw_only=True):
    upload_id: str


class Downloaded(WireStruct, frozen=True, kw_only=True):
    """A file that was written to the disk of the client."""

    uri: str
    target: str
    size: int


class FileBytes(WireStruct, frozen=True, kw_only=True):
    """Some bytes of a file."""

    uri: str
    data: bytes
    """In JSON as base64."""
    offset: int
    size: int
    """The bytes of the whole file."""
    content_type: str
    version: int
    """The number of the version; 0 for a view."""
    sha256: str
    """The hash of the whole file. Empty for a view."""
