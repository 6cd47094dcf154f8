"""Hostile files get a clear error that names the file, in bounded time, or are read without harm."""

import io
import time
import zipfile

import pytest

from holdfast.documents import list_archive, parse, summarise_file, zips
from holdfast.errors import DocumentError
from hostile_files import ARCHIVE_PROBLEMS, EXPECTED, hostile_archive, hostile_files
from sample_files import make_zip


@pytest.mark.parametrize("name", [name for name, problem in EXPECTED.items() if problem])
def test_a_hostile_file_gets_an_error_that_names_it(name: str) -> None:
    data = hostile_files()[name]
    started_at = time.process_time()
    with pytest.raises(DocumentError) as raised:
        parse(f"folder/{name}", data)
    assert time.process_time() - started_at < 1
    message = raised.value.message
    assert EXPECTED[name] in message
    assert message.startswith(f"file: 'folder/{name}' ")
    assert len(message) < 300
    assert raised.value.details["field"] == "file"


@pytest.mark.parametrize("name", [name for name, problem in EXPECTED.items() if not problem])
def test_a_harmless_file_of_a_hostile_shape_is_read(name: str) -> None:
    data = hostile_files()[name]
    started_at = time.process_time()
    document = parse(name, data)
    summary = summarise_file(document)
    assert time.process_time() - started_at < 1
    assert len(summary.abstract) <= len(summary.overview) <= max(len(document.text), 0)
    assert all(len(part.title) <= 160 and part.end - part.start <= 3_500 for part in document.parts)


def test_a_file_read_as_latin_1_has_a_note() -> None:
    document = parse("a.txt", hostile_files()["latin.txt"])
    assert document.text == "Zürich, Köln und Málaga"
    assert "read as Latin-1" in document.notes[0]


def test_a_text_that_begins_like_a_program_or_an_image_is_a_text() -> None:
    for text in ("MZ is a format.", "BM and BZh are signatures.", "ID3 tags", "RIFFs", "GIF89 is old"):
        assert parse("a.md", text.encode()).text == text


def test_each_bad_entry_of_an_archive_has_a_problem_and_the_good_ones_are_read() -> None:
    archive = list_archive(hostile_archive())
    contents = {entry.path: b"".join(archive.read(entry)) for entry in archive.entries if not entry.is_folder}
    assert contents == {"good.txt": b"good", "folder/höher.md": b"# Good too", "last.txt": b"last"}
    assert [entry.path for entry in archive.entries if entry.is_folder] == ["folder"]
    problems = {each.path: each.problem for each in archive.problems}
    assert problems.keys() == ARCHIVE_PROBLEMS.keys()
    assert [name for name, words in ARCHIVE_PROBLEMS.items() if words not in problems[name]] == []


def test_an_archive_larger_than_allowed_keeps_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.documents.archives.MAX_TOTAL_BYTES", 25)
    archive = list_archive(make_zip({"a": b"1" * 10, "b": b"2" * 10, "c": b"3" * 10, "d": b"4"}))
    assert [entry.path for entry in archive.entries] == ["a", "b", "d"]
    assert "more than 25 bytes" in archive.problems[0].problem


def test_an_entry_with_a_wrong_checksum_is_an_error_when_it_is_read() -> None:
    data = make_zip({"a.txt": b"a" * 100, "b.txt": b"b"})
    at = data.index(b"a.txt") + 5
    archive = list_archive(data[:at] + b"\xff" + data[at + 1 :])
    with pytest.raises(DocumentError, match=r"'a\.txt' is damaged"):
        list(archive.read(archive.entries[0]))
    assert list(archive.read(archive.entries[1])) == [b"b"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is not a zip archive"),
        (b"no archive at all" * 10, "is not a zip archive"),
        (b"PK\x03\x04", "is a zip archive whose end is missing"),
        (hostile_archive()[:5_000], "is a zip archive whose end is missing"),
    ],
)
def test_a_file_that_is_no_archive_is_an_error(data: bytes, problem: str) -> None:
    with pytest.raises(DocumentError, match=rf"'up\.zip' {problem}"):
        list_archive(data, "up.zip")


def test_a_long_list_of_entries_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(1_000):
            archive.writestr(str(number), b"")
    monkeypatch.setattr(zips, "MAX_DIRECTORY_BYTES", 10_000)
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(DocumentError, match="list of entries has"):
        list_archive(buffer)
