"""Settings: defaults, file, environment, arguments; each wins over the one before. A found file sets little."""

import logging
import time
from pathlib import Path
from typing import Any, get_args

import pytest

import holdfast
from holdfast import Settings
from holdfast.config import LogFormat
from holdfast.config_file import FOUND_FILE_MAY_SET, Source
from holdfast.errors import InvalidArgumentError

ONLY_THE_USER_SETS = {
    # where keys and texts go, and what does the work
    *("path", "url", "api_key", "model_provider", "model_name", "model_base_url", "model_api_key"),
    *("embedder", "embedding_model", "embedding_base_url", "embedding_api_key"),
    # who gets into a server, and what protects it
    *("auth_mode", "root_api_key", "key_cache_seconds", "max_message_bytes", "max_body_bytes"),
    *("request_timeout_seconds", "slow_client_seconds", "rate_limit_per_second", "rate_limit_burst", "max_streams"),
    *("max_streams_per_user", "stream_heartbeat_seconds", "stream_poll_seconds", "log_level"),
    # what costs money: more calls, larger ones, or the same ones again
    *("model_timeout_seconds", "model_concurrency", "model_requests_per_minute", "model_tokens_per_minute"),
    *("model_input_tokens", "model_output_tokens", "task_attempts", "task_backoff_seconds"),
    *("task_backoff_max_seconds", "task_lease_seconds"),
    # what is forgotten, or left out of what a model is shown later
    *("idempotency_hours", "task_retention_hours", "overview_tokens", "rules_tokens"),
    *("earlier_tokens", "after_failed_archive"),
    # a value of these keeps the program from working, or from ending
    *("http_timeout_seconds", "http_attempts", "token_counter", "shutdown_seconds", "worker_threads"),
    *("worker_poll_seconds", "close_seconds", "sqlite_busy_timeout_ms", "postgres_pool_max", "postgres_wait_seconds"),
}


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
        ("model_api_key = 5", "model_api_key: is not text; put it in quotes"),
        ("tool_output_threshold = 0", "tool_output_threshold: Expected `int` >= 1"),
        ("tool_output_threshold = 'many'", "tool_output_threshold: Expected `int`, got `str`"),
        ("= nonsense", "is not TOML"),
    ],
)
def test_a_mistake_in_a_named_file_is_an_error(bare: Path, text: str, problem: str) -> None:
    (bare / "mine.toml").write_text(text)
    with pytest.raises(InvalidArgumentError, match=problem):
        Settings.load("mine.toml")


def test_a_named_file_must_be_there() -> None:
    with pytest.raises(InvalidArgumentError, match=r"there is no file 'gone\.toml'"):
        Settings.load("gone.toml")


def test_every_setting_is_either_harmless_in_a_found_file_or_the_users_alone() -> None:
    """A new setting has to be put in one of the two lists, by someone who thought about it."""
    assert not FOUND_FILE_MAY_SET & ONLY_THE_USER_SETS
    assert set(Settings.__struct_fields__) == FOUND_FILE_MAY_SET | ONLY_THE_USER_SETS


def planted_value(name: str) -> str:
    """A value that the setting accepts and that is not its default."""
    literals = {
        "auth_mode": "trusted",
        "log_level": "error",
        "token_counter": "o200k_base",
        "after_failed_archive": "proceed",
        "model_provider": "openai",
        "embedder": "openai",
    }
    if name in literals or getattr(Settings(), name) is None:
        return f'"{literals.get(name, "http://planted.example")}"'
    return "4321"


@pytest.mark.parametrize("name", sorted(ONLY_THE_USER_SETS))
def test_a_file_that_was_found_does_not_set_what_is_the_users(
    bare: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = f"{name} = {planted_value(name)}"
    (bare / "holdfast.toml").write_text(text)
    assert Settings.load() == Settings()
    (record,) = caplog.records
    told = record.getMessage()
    assert (record.name, record.levelno) == ("holdfast.settings", logging.WARNING)
    assert f"{str(bare / 'holdfast.toml')!r}: ignored {name}, which only a file that you name may set" in told
    assert "--config holdfast.toml" in told
    assert "HOLDFAST_CONFIG" in told
    assert "planted.example" not in told
    caplog.clear()
    assert getattr(Settings.load("holdfast.toml"), name) != getattr(Settings(), name)
    assert caplog.records == []


def test_a_file_that_was_named_sets_everything_and_says_nothing(
    bare: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (bare / "holdfast.toml").write_text('url = "http://127.0.0.1:9"\nmodel_base_url = "http://127.0.0.1:9/v1"')
    settings, source = Settings.load_with_source("holdfast.toml")
    assert (settings.url, settings.model_base_url) == ("http://127.0.0.1:9", "http://127.0.0.1:9/v1")
    assert source == Source(str(bare / "holdfast.toml"), named=True, used=("url", "model_base_url"))
    monkeypatch.setenv("HOLDFAST_CONFIG", str(bare / "holdfast.toml"))
    assert Settings.load() == settings
    assert caplog.records == []


def test_a_file_that_was_found_sets_what_is_harmless(bare: Path, caplog: pytest.LogCaptureFixture) -> None:
    values: dict[str, Any] = {"tool_output_threshold": 1, "tool_output_preview": 10**12, "sqlite_idle_readers": 10**12}
    lines = [f"{name} = {value}" for name, value in values.items()]
    (bare / "holdfast.toml").write_text("\n".join([*lines, f'log_format = "{get_args(LogFormat)[-1]}"']))
    assert Settings.load() == Settings(**values, log_format="console")
    assert caplog.records == []
    with holdfast.connect(bare / "data") as client:  # the worst that these can do
        client.add_message("s", "user", "It still works.")
        client.commit_session("s")
        assert client.get_session_context("s").messages[0].seq == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"= nonsense", "is not TOML"),
        (b"\xff\xfe", "is not TOML"),
        (b"a = " + b"[" * 900, "is not TOML"),
        (b"a = 9" + b"9" * 900, "'a', not a setting"),
        (b"\n".join(b"a%d = %s" % (n, b"[" * 900) for n in range(60)), "is not TOML"),
        (b"#" * 70_000, "more than 65536 bytes"),
        (b"a" + b".a" * 32_000 + b" = 1", "a line of more than 1000 bytes"),
        (b"tool_output_threshold = 0", "tool_output_threshold: Expected `int` >= 1 (got 0)"),
        (b"tool_output_threshold = 'many'", "tool_output_threshold: Expected `int`, got `str`"),
        (b"tool_output_treshold = 1", "'tool_output_treshold', not a setting"),
        (b"[tool]\nx = 1", "'tool', not a setting"),
        (b'"\\u001b[31m\\n" = 1', r"'\x1b[31m\n', not a setting"),
    ],
)
def test_a_foreign_file_stops_nobody_whatever_is_in_it(
    bare: Path, content: bytes, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    (bare / "holdfast.toml").write_bytes(content)
    before = time.monotonic()
    assert Settings.load() == Settings()
    assert time.monotonic() - before < 2
    (record,) = caplog.records
    assert problem in record.getMessage()
    assert record.getMessage().isprintable()


def test_a_foreign_file_does_not_decide_how_long_a_warning_is(bare: Path, caplog: pytest.LogCaptureFixture) -> None:
    (bare / "holdfast.toml").write_text("\n".join(f"{'x' * 500}{n} = 1" for n in range(100)))
    assert Settings.load() == Settings()
    assert len(caplog.text) < 2_000
    assert "and 90 more" in caplog.text


def test_a_file_that_cannot_be_read_stops_nobody(bare: Path, caplog: pytest.LogCaptureFixture) -> None:
    (bare / "holdfast.toml").symlink_to("holdfast.toml")
    (bare / "mine.toml").symlink_to(bare)
    assert Settings.load() == Settings()
    with pytest.raises(InvalidArgumentError, match="there is no file"):
        Settings.load("mine.toml")


def test_a_folder_that_is_gone_has_no_file(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / "gone").mkdir()
    monkeypatch.chdir(bare / "gone")
    (bare / "gone").rmdir()
    assert Settings.load() == Settings()


def test_only_the_current_folder_is_looked_at(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / "holdfast.toml").write_text("tool_output_threshold = 500")
    (bare / ".env").write_text("HOLDFAST_URL=http://127.0.0.1:9\nHOLDFAST_CONFIG=holdfast.toml")
    assert Settings.load().url is None
    (bare / "below").mkdir()
    monkeypatch.chdir(bare / "below")
    assert Settings.load() == Settings()


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
