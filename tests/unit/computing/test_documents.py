"""Files are read as documents in a child process. A file that ends the process is the error of that file."""

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.computing.documents import PARSE_DOCUMENT, FileToParse, ParsedFile, parse_file
from holdfast.computing.job import Job, no_vectors
from holdfast.computing.process import ProcessRunner
from holdfast.computing.thread import ThreadRunner
from holdfast.config import Settings
from holdfast.errors import UnavailableError
from hostile_files import EXPECTED, hostile_files, make_endless_pdf
from hostile_jobs import OBEY, Demand
from sample_files import make_pdf


@pytest.fixture
def runner() -> Iterator[ProcessRunner]:
    runner = ProcessRunner(
        Settings(compute_seconds=2.0, compute_memory_mb=256), ["holdfast.computing.documents", "hostile_jobs"]
    )
    yield runner
    runner.close()


def run(runner: ProcessRunner | ThreadRunner, file: FileToParse) -> ParsedFile:
    return parse_file(lambda job, given: runner.run(job, given, no_vectors), file)


def test_a_document_is_the_same_in_the_child_and_in_a_thread(runner: ProcessRunner) -> None:
    file = FileToParse("a/manual.pdf", make_pdf(["One page. " * 50, "Two."], "Manual"), "for tests", "the second page")
    parsed = run(runner, file)
    assert parsed == run(ThreadRunner(), file)
    assert (parsed.title, parsed.media_type, parsed.error) == ("Manual", "application/pdf", "")
    assert [part.page for part in parsed.outline] == [1, 2]
    assert parsed.abstract.endswith("(for tests)")
    assert parsed.text[parsed.outline[1].start : parsed.outline[1].end].strip() == "Two."


def test_one_bad_file_after_the_other_does_not_fail_the_rest(runner: ProcessRunner) -> None:
    names = [name for name in EXPECTED if not name.startswith("giant")]
    errors = {name: run(runner, FileToParse(name, hostile_files()[name])).error for name in names}
    assert [name for name in names if bool(errors[name]) != bool(EXPECTED[name])] == []
    assert [name for name in names if EXPECTED[name] not in errors[name]] == []
    assert run(runner, FileToParse("a.md", b"# Fine")).title == "Fine"


def test_a_file_that_needs_too_much_memory_is_the_error_of_that_file(runner: ProcessRunner) -> None:
    parsed = run(runner, FileToParse("big.bin", b"a" * 120_000_000))
    assert parsed.error == (
        "'big.bin' needs more memory than the limit compute_memory_mb allows; split it into smaller files"
    )
    assert run(runner, FileToParse("a.md", b"# Fine")).title == "Fine"


def test_a_pdf_without_end_is_the_error_of_that_file(runner: ProcessRunner) -> None:
    """The library ends the process if it gets no memory."""
    error = run(runner, FileToParse("endless.pdf", make_endless_pdf())).error
    assert error == "'endless.pdf' ended the process that read it; it may be damaged: save it again, or leave it out"
    assert run(runner, FileToParse("a.md", b"# Fine")).title == "Fine"


def test_a_file_that_takes_too_long_is_the_error_of_that_file(runner: ProcessRunner) -> None:
    def compute(_job: Job[FileToParse, ParsedFile], _file: FileToParse) -> ParsedFile:
        runner.run(OBEY, Demand("loop"), no_vectors)
        raise AssertionError("the child must have ended")

    assert parse_file(compute, FileToParse("a.pdf", b"")).error == (
        "'a.pdf' needs more CPU time than the limit compute_seconds allows; split it into smaller files"
    )


def test_a_process_that_was_ended_once_reads_the_file_again(runner: ProcessRunner) -> None:
    calls: list[Any] = []

    def compute(job: Job[FileToParse, ParsedFile], file: FileToParse) -> ParsedFile:
        calls.append(job)
        return runner.run(OBEY, Demand("die"), no_vectors) if len(calls) == 1 else runner.run(job, file, no_vectors)  # type: ignore[return-value]

    assert parse_file(compute, FileToParse("a.md", b"# Fine")).title == "Fine"
    assert calls == [PARSE_DOCUMENT] * 2


def test_a_process_that_cannot_start_is_not_the_error_of_a_file() -> None:
    def compute(_job: Any, _file: Any) -> ParsedFile:
        raise UnavailableError("no process", service="compute", reason="start")

    with pytest.raises(UnavailableError):
        parse_file(compute, FileToParse("a.md", b"# Fine"))
