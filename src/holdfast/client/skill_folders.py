"""Skills on the disk of a client: a file SKILL.md, or the folder that it is in, as a zip archive."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import InvalidArgumentError, NotFoundError, TooLargeError
from holdfast.ops.tree.uploads import PART_BYTES

MAX_BYTES = 64 << 20
MAX_FILES = 2_000
_SKIPPED = frozenset({".git", "__pycache__", ".DS_Store", "node_modules", ".venv"})


class PackedSkill(NamedTuple):
    name: str
    data: bytes

    def parts(self) -> Iterator[bytes]:
        """Yield the bytes in parts that can be uploaded."""
        for start in range(0, len(self.data), PART_BYTES):
            yield self.data[start : start + PART_BYTES]


def pack(path: Path) -> PackedSkill:
    """Read a skill to upload it. Symbolic links are left out."""
    if path.is_file():
        return PackedSkill(path.name, _read(path))
    if not path.is_dir():
        raise NotFoundError("file", str(path))
    files = [each for each in sorted(path.rglob("*")) if _is_packed(path, each)]
    if len(files) > MAX_FILES:
        raise TooLargeError(f"{path} has {len(files):,} files; a skill has at most {MAX_FILES:,}")
    packed = io.BytesIO()
    total = 0
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in files:
            data = _read(each)
            total += len(data)
            if total > MAX_BYTES:
                raise TooLargeError(f"the files in {path} have more than {MAX_BYTES:,} bytes; remove large ones")
            entry = zipfile.ZipInfo(each.relative_to(path).as_posix())  # a fixed time: the same folder, the same bytes
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return PackedSkill(f"{path.resolve().name}.zip", packed.getvalue())


def _is_packed(folder: Path, path: Path) -> bool:
    names = path.relative_to(folder).parts
    return path.is_file() and not path.is_symlink() and _SKIPPED.isdisjoint(names)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgumentError("path", f"{str(path)!r} cannot be read: {error.strerror}") from None
