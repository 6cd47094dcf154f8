"""The structure check reports what it forbids, and nothing else."""

from pathlib import Path

import pytest

from structure import MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_MODULES, violations


def write(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_small_package_has_no_violations(tmp_path: Path) -> None:
    write(tmp_path, "store/tables.py", 'QUERY = "SELECT 1"\n')
    write(tmp_path, "engine/gate.py", "def call() -> None:\n    pass\n")
    assert list(violations(tmp_path)) == []


def test_a_folder_with_too_many_modules_is_reported(tmp_path: Path) -> None:
    for number in range(MAX_MODULES + 1):
        write(tmp_path, f"engine/m{number}.py", "")
    (found,) = violations(tmp_path)
    assert f"engine: {MAX_MODULES + 1} modules" in found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1\n" * (MAX_FILE_LINES + 1), "lines, more than"),
        ("def long() -> None:\n" + "    x = 1\n" * MAX_FUNCTION_LINES, "long has"),
        ('QUERY = "DELETE FROM messages"\n', "SQL outside store/"),
        ('"""Who was told."""\n', "'told'"),
        ("MOST_KEYS = 3\n", "'MOST_KEYS'"),
    ],
)
def test_a_file_that_breaks_a_rule_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    write(tmp_path, "engine/file.py", text)
    (found,) = violations(tmp_path)
    assert problem in found
