"""The result of indexing stored files again."""

from typing import Literal

import msgspec

from holdfast.model.base import WireStruct
from holdfast.validation import prebuild_decoder


class Reindexed(WireStruct, frozen=True, kw_only=True):
    status: Literal["accepted", "completed"]
    uri: str
    task_id: str
    object_type: Literal["resource", "skill", "tree"]
    mode: str
    scanned_records: int = 0
    """How many files and folders were looked at."""
    rebuilt_records: int = 0
    """How many of them were indexed again."""


class StoredPlace(msgspec.Struct, frozen=True):
    root: str
    path: str


@prebuild_decoder
class ReindexPayload(msgspec.Struct, frozen=True):
    """What a task that indexes files again works on."""

    uri: str
    places: list[StoredPlace]
    parses: bool
    """Whether files are parsed again, and folders summarised."""
    recursive: bool
