"""The job that reads a file as a document, and how its failures become the error of that file."""

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast import documents
from holdfast.computing.job import Job, JobContext
from holdfast.errors import DocumentError, HoldfastError, ResourceExhaustedError, UnavailableError
from holdfast.model.tree.files import FilePart


class FileToParse(msgspec.Struct, frozen=True):
    name: str
    """The name or the path of the file. Errors name it."""
    data: bytes
    reason: str = ""
    """Why the user added the file. The abstract has it."""
    instruction: str = ""
    """What the user wants to know of the file. The overview has it."""


class ParsedFile(msgspec.Struct, frozen=True):
    """What a file contains, or why it cannot be read."""

    media_type: str = ""
    title: str = ""
    text: str = ""
    is_content: bool = False
    """Whether the text is the file itself: its bytes are the text in UTF-8."""
    outline: list[FilePart] = []
    abstract: str = ""
    overview: str = ""
    metadata: dict[str, Any] = {}
    notes: list[str] = []
    error: str = ""
    """One sentence that names the file, if it cannot be read. The other fields are empty then."""


def _parse(input: FileToParse, _context: JobContext) -> ParsedFile:
    try:
        parsed = documents.parse(input.name, input.data)
    except DocumentError as error:
        return ParsedFile(error=error.details["problem"])
    summary = documents.summarise_file(parsed, input.reason, input.instruction)
    return ParsedFile(
        parsed.media_type,
        parsed.title,
        parsed.text,
        parsed.is_content,
        parsed.parts,
        summary.abstract,
        summary.overview,
        parsed.metadata,
        parsed.notes,
    )


def parse_file(
    compute: Callable[[Job[FileToParse, ParsedFile], FileToParse], ParsedFile], file: FileToParse
) -> ParsedFile:
    """Run the job. A file that takes too much time or memory, or ends the process twice, is an error of that file.

    `compute` runs a job, as `ClaimedTask.compute` does. A process that cannot be started is an `UnavailableError`.
    """
    try:
        return _compute_twice(compute, file)
    except ResourceExhaustedError as error:
        limit = {"compute_seconds": "CPU time", "compute_memory_mb": "memory"}.get(error.details.get("limit", ""), "")
        needs = f"needs more {limit} than the limit {error.details['limit']}" if limit else "is too large"
        return _failed(file.name, f"{needs} allows; split it into smaller files")
    except UnavailableError as error:
        if error.details["reason"] != "exit":
            raise
        return _failed(file.name, "ended the process that read it; it may be damaged: save it again, or leave it out")


def _compute_twice(
    compute: Callable[[Job[FileToParse, ParsedFile], FileToParse], ParsedFile], file: FileToParse
) -> ParsedFile:
    """Run the job, and once more if its process ended: the system may have ended it for another reason."""
    try:
        return compute(PARSE_DOCUMENT, file)
    except UnavailableError as error:
        if error.details["reason"] != "exit":
            raise
    return compute(PARSE_DOCUMENT, file)


def _failed(name: str, problem: str) -> ParsedFile:
    error: HoldfastError = DocumentError(name, problem)
    return ParsedFile(error=error.details["problem"])


PARSE_DOCUMENT = Job[FileToParse, ParsedFile]("parse document", _parse, FileToParse, ParsedFile)

JOBS: list[Job[Any, Any]] = [PARSE_DOCUMENT]
