"""Files of the audit log: exports, which can be verified without a database, and saved heads.

An export has a line of JSON for its beginning, one for each line of the chain, and one for the head of the chain.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Self

import msgspec

from holdfast.audit_chain import Verifier
from holdfast.errors import ConflictError, InvalidArgumentError, UnavailableError
from holdfast.model.audit import AuditExport, AuditHead, AuditLine, AuditVerification, SavedHead

MAX_LINE_BYTES = 256 * 1024
MAX_HEADS = 1_000_000
"""How many saved heads are read."""


class Beginning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line of an export."""

    format: Literal["holdfast-audit-1"] = "holdfast-audit-1"
    account_id: str
    start_number: int
    start_link: str


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last line of an export."""

    head: AuditHead


class AuditFileWriter:
    """Writes an export. The file gets its name when it is complete."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._partial = file.with_name(f".{file.name}.partial")
        self._finished = False
        self.last_number = 0

    def __enter__(self) -> Self:
        if self._file.is_dir():
            raise InvalidArgumentError("file", f"{str(self._file)!r} is a folder; name a file in it")
        try:
            self._opened: BinaryIO = self._partial.open("wb")
        except OSError as error:
            raise InvalidArgumentError(
                "file", f"{str(self._file)!r} cannot be written: {error.strerror}; name another"
            ) from None
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._opened.close()
        if self._finished:
            self._partial.replace(self._file)
        else:
            self._partial.unlink(missing_ok=True)

    def begin(self, head: AuditHead) -> None:
        self.last_number = head.start_number
        self._write(Beginning(account_id=head.account_id, start_number=head.start_number, start_link=head.start_link))

    def add(self, page: AuditExport) -> None:
        if page.head.start_number > self.last_number:
            raise ConflictError("retention has removed lines while they were exported; export again", type="audit")
        for line in page.lines:
            self._write(line)
            self.last_number = line.number

    def finish(self, head: AuditHead) -> None:
        self._write(End(head))
        self._finished = True

    def _write(self, value: msgspec.Struct) -> None:
        try:
            self._opened.write(msgspec.json.encode(value) + b"\n")
        except OSError as error:
            raise UnavailableError(
                f"{str(self._file)!r} cannot be written: {error.strerror}; free some space and try again",
                service="disk",
                reason=type(error).__name__,
            ) from error


def verify_file(
    file: Path,
    *,
    heads: Path | None = None,
    key: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> AuditVerification:
    """Verify an export. It needs no database."""
    saved = [] if heads is None else read_saved_heads(heads)
    lines = enumerate(_lines(file), 1)
    _, first = next(lines, (1, b""))
    try:
        beginning = msgspec.json.decode(first, type=Beginning)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(
            "file", f"{str(file)!r} is not an export of an audit log: its first line is wrong ({error})"
        ) from None
    verifier = Verifier(beginning.account_id, saved, key)
    start = AuditHead(
        account_id=beginning.account_id,
        number=0,
        link="",
        start_number=beginning.start_number,
        start_link=beginning.start_link,
    )
    verifier.begin(start)
    head: AuditHead | None = None
    size = max(file.stat().st_size, 1)
    read = len(first)
    for file_line, text in lines:
        read += len(text)
        if head is not None:
            verifier.fail_to_read(file_line, "follows the end")
            break
        try:
            decoded = _decode_line(text)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            verifier.fail_to_read(file_line, f"cannot be read: {error}")
            break
        if isinstance(decoded, End):
            head = decoded.head
            if not _is_same_chain(head, beginning):
                verifier.fail_to_read(file_line, "has another beginning of the chain than the first line")
        else:
            verifier.add(decoded, file_line)
        if progress is not None and file_line % 1_000 == 0:
            progress(read, size, beginning.account_id)
    return verifier.finish(head)


def _is_same_chain(head: AuditHead, beginning: Beginning) -> bool:
    return (head.account_id, head.start_number, head.start_link) == (
        beginning.account_id,
        beginning.start_number,
        beginning.start_link,
    )


def _decode_line(text: bytes) -> AuditLine | End:
    if text.startswith(b'{"head":'):
        return msgspec.json.decode(text, type=End)
    return msgspec.json.decode(text, type=AuditLine)


def _lines(file: Path, field: str = "file") -> Iterator[bytes]:
    """The lines of a file, which `field` names. A line that is too long is cut, and can then not be read."""
    try:
        with file.open("rb") as opened:
            while line := opened.readline(MAX_LINE_BYTES):
                yield line
    except OSError as error:
        raise InvalidArgumentError(field, f"{str(file)!r} cannot be read: {error.strerror}; name another") from None


def read_saved_heads(file: Path) -> list[SavedHead]:
    """Read the heads that the setting `audit_head_file` has saved."""
    heads: list[SavedHead] = []
    for number, line in enumerate(_lines(file, "heads"), 1):
        if not line.rstrip().endswith(b"}"):  # a disk that was full has cut the line; the head was saved again after it
            continue
        try:
            heads.append(msgspec.json.decode(line, type=SavedHead))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(
                "heads", f"line {number} of {str(file)!r} is not a saved head: {error}"
            ) from None
        if len(heads) > MAX_HEADS:
            raise InvalidArgumentError("heads", f"{str(file)!r} has more than {MAX_HEADS} heads; split it")
    return heads
