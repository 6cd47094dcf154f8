"""A resource with hostile files: each is named with its problem, the others go in, and nothing else is touched."""

from pathlib import Path

import pytest

import holdfast
from holdfast.errors import ProcessingError
from hostile_files import ARCHIVE_PROBLEMS, EXPECTED, hostile_archive, hostile_files


def paths_below(client: holdfast.Client, uri: str) -> set[str]:
    entries = client.tree(uri, level_limit=40)
    return {entry.uri.removeprefix(f"{uri}/") for entry in entries if not entry.is_dir}


def test_each_hostile_file_of_a_folder_is_named_and_the_others_go_in(tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    files = {name: data for name, data in hostile_files().items() if "/" not in name}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (folder / "good.md").write_text("# Good\n\nThe wombat digs.\n")
    with holdfast.connect(":memory:") as client:
        added = client.add_resource(folder, wait=True)
        problems = {problem.file: problem.message for problem in added.errors or ()}
        expected = {name: words for name, words in EXPECTED.items() if words and name in files}
        assert problems.keys() == expected.keys()
        assert [name for name, words in expected.items() if words not in problems[name]] == []
        assert paths_below(client, added.root_uri) == {*files, "good.md"} - expected.keys()
        for name in [each for each in sorted(expected) if not each.endswith(".zip")][:3]:
            with pytest.raises(ProcessingError, match="nothing was added"):
                client.add_resource(files[name], name=name, to="viking://resources/alone", wait=True)
        assert [entry.name for entry in client.ls("viking://resources")] == ["mixed"]


def test_each_bad_entry_of_a_hostile_archive_is_named_and_the_good_ones_go_in(tmp_path: Path) -> None:
    before = sorted(tmp_path.parent.iterdir())
    with holdfast.connect(":memory:") as client:
        added = client.add_resource(hostile_archive(), name="hostile.zip", wait=True)
        assert paths_below(client, added.root_uri) == {"good.txt", "folder/höher.md", "last.txt"}
        assert {problem.file for problem in added.errors or ()} >= ARCHIVE_PROBLEMS.keys()
        with pytest.raises(ProcessingError):
            client.add_resource(hostile_archive(), name="hostile.zip", strict=True, wait=True)
        assert [entry.name for entry in client.ls("viking://resources")] == ["hostile"]
    assert sorted(tmp_path.parent.iterdir()) == before
