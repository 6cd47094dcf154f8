"""Settings: defaults, file, environment, arguments; each wins over the one before."""

from pathlib import Path

import pytest

from holdfast import Settings
from holdfast.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_defaults_need_nothing() -> None:
    assert Settings.load() == Settings()


def test_a_file_in_the_current_folder_is_read(bare: Path) -> None:
    (bare / "holdfast.toml").write_text("tool_output_threshold = 500")
    assert Settings.load().tool_output_threshold == 500


def test_the_environment_wins_over_the_file(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / "holdfast.toml").write_text("tool_output_threshold = 500\ntool_output_preview = 50")
    monkeypatch.setenv("HOLDFAST_TOOL_OUTPUT_THRESHOLD", "600")
    settings = Settings.load()
    assert (settings.tool_output_threshold, settings.tool_output_preview) == (600, 50)


def test_arguments_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_TOOL_OUTPUT_THRESHOLD", "600")
    assert Settings.load(tool_output_threshold=700).tool_output_threshold == 700


def test_another_file_can_be_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / "other.toml").write_text("tool_output_threshold = 500")
    monkeypatch.setenv("HOLDFAST_CONFIG", "other.toml")
    assert Settings.load().tool_output_threshold == 500


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tool_output_treshold = 1", "tool_output_treshold: is not a setting; the settings are path, "),
        ("tool_output_threshold = 0", "tool_output_threshold: Expected `int` >= 1"),
        ("tool_output_threshold = 'many'", "tool_output_threshold: Expected `int`, got `str`"),
        ("= nonsense", "is not TOML"),
    ],
)
def test_a_mistake_is_named(bare: Path, text: str, problem: str) -> None:
    (bare / "holdfast.toml").write_text(text)
    with pytest.raises(InvalidArgumentError, match=problem):
        Settings.load()


def test_a_named_file_must_be_there() -> None:
    with pytest.raises(InvalidArgumentError, match=r"there is no file 'gone\.toml'"):
        Settings.load("gone.toml")


@pytest.mark.parametrize(
    ("path", "file"),
    [("data", "data/holdfast.db"), ("chat.db", "chat.db"), ("deep/chat.sqlite3", "deep/chat.sqlite3")],
)
def test_a_folder_gets_a_file_inside_and_a_file_is_one(bare: Path, path: str, file: str) -> None:
    assert Settings(path=path).database_file() == str(bare / file)


def test_a_folder_that_looks_like_a_file_stays_a_folder(bare: Path) -> None:
    (bare / "chat.db").mkdir()
    assert Settings(path="chat.db").database_file() == str(bare / "chat.db" / "holdfast.db")


def test_by_default_the_database_is_in_the_data_folder_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere/share")
    assert Settings().database_file() == "/somewhere/share/holdfast/holdfast.db"
