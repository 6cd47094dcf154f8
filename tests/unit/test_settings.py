"""Settings from defaults, file, environment and arguments, in this order. Discovered files can set little."""

import logging
import os
import time
from pathlib import Path
from typing import Any, get_args

import pytest

import holdfast
from holdfast import Settings
from holdfast.config import LogFormat, limit_computing_threads
from holdfast.config_file import DISCOVERED_FILE_MAY_SET, SettingsSource
from holdfast.errors import InvalidArgumentError

NOT_IN_DISCOVERED_FILES = {
    "allowed_fetch_hosts",
    "fetch_git",
    "fetch_seconds",
    "fetch_urls",
    "max_fetch_bytes",
    "resource_folders",
    "audit_head_file",
    "audit_key",
    "audit_retention_days",
    # where keys and texts are sent, and which provider is used
    *("path", "url", "api_key", "model_provider", "model_name", "model_base_url", "model_api_key"),
    *("embedder", "embedding_model", "embedding_base_url", "embedding_api_key"),
    *("embedding_model_path", "rerank_base_url", "rerank_model", "rerank_api_key"),
    # access to a server and its protection
    *("auth_mode", "root_api_key", "key_cache_seconds", "max_message_bytes", "max_body_bytes"),
    *("request_timeout_seconds", "slow_client_seconds", "rate_limit_per_second", "rate_limit_burst", "max_streams"),
    *("max_response_bytes", "max_buffered_bytes"),
    *("max_upload_bytes", "max_open_uploads", "max_open_upload_bytes"),
    *("max_streams_per_user", "stream_heartbeat_seconds", "stream_poll_seconds", "log_level"),
    # settings that cost money: more, larger or repeated calls
    *("model_timeout_seconds", "model_concurrency", "model_requests_per_minute", "model_tokens_per_minute"),
    *("model_input_tokens", "model_output_tokens", "query_model_seconds", "task_attempts", "task_backoff_seconds"),
    *("task_backoff_max_seconds", "task_lease_seconds"),
    # settings that delete data or leave it out of contexts
    *("idempotency_hours", "task_retention_hours", "overview_tokens", "rules_tokens"),
    *("earlier_tokens", "after_failed_archive"),
    # settings with values that stop the program or keep it from ending
    *("http_timeout_seconds", "http_attempts", "token_counter", "shutdown_seconds", "worker_threads"),
    *("worker_poll_seconds", "close_seconds", "sqlite_busy_timeout_ms", "postgres_pool_max", "postgres_wait_seconds"),
    *("compute", "compute_seconds", "compute_memory_mb", "vector_memory_bytes", "exact_vectors"),
}


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_any_source_the_defaults_are_used() -> None:
    assert Settings.load() == Settings()


def test_a_file_in_the_current_folder_is_read(empty_folder: Path) -> None:
    (empty_folder / "holdfast.toml").write_text("tool_output_threshold = 500")
    assert Settings.load().tool_output_threshold == 500


def test_the_environment_overrides_the_file(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty_folder / "holdfast.toml").write_text("tool_output_threshold = 500\ntool_output_preview = 50")
    monkeypatch.setenv("HOLDFAST_TOOL_OUTPUT_THRESHOLD", "600")
    settings = Settings.load()
    assert (settings.tool_output_threshold, settings.tool_output_preview) == (600, 50)


def test_arguments_override_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_TOOL_OUTPUT_THRESHOLD", "600")
    assert Settings.load(tool_output_threshold=700).tool_output_threshold == 700


def test_holdfast_config_names_another_file(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty_folder / "other.toml").write_text("tool_output_threshold = 500")
    monkeypatch.setenv("HOLDFAST_CONFIG", "other.toml")
    assert Settings.load().tool_output_threshold == 500


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tool_output_treshold = 1", "tool_output_treshold: is not a setting; the settings are path, "),
        ("model_api_key = 5", "model_api_key: is not a string; put it in quotes"),
        ("tool_output_threshold = 0", "tool_output_threshold: Expected `int` >= 1"),
        ("tool_output_threshold = 'many'", "tool_output_threshold: Expected `int`, got `str`"),
        ("= nonsense", "is not TOML"),
    ],
)
def test_a_mistake_in_a_named_file_is_an_error(empty_folder: Path, text: str, problem: str) -> None:
    (empty_folder / "mine.toml").write_text(text)
    with pytest.raises(InvalidArgumentError, match=problem):
        Settings.load("mine.toml")


def test_a_named_file_must_exist() -> None:
    with pytest.raises(InvalidArgumentError, match=r"there is no file 'gone\.toml'"):
        Settings.load("gone.toml")


def test_every_setting_is_classified_for_discovered_files() -> None:
    """A new setting must be added to one of the two lists."""
    assert not DISCOVERED_FILE_MAY_SET & NOT_IN_DISCOVERED_FILES
    assert set(Settings.__struct_fields__) == DISCOVERED_FILE_MAY_SET | NOT_IN_DISCOVERED_FILES


def other_value(name: str) -> str:
    """Return a valid value that is not the default."""
    literals = {
        "auth_mode": "trusted",
        "log_level": "error",
        "token_counter": "o200k_base",
        "after_failed_archive": "proceed",
        "model_provider": "openai",
        "embedder": "openai",
        "compute": "process",
    }
    if isinstance(getattr(Settings(), name), bool):
        return "true"
    if name in literals or getattr(Settings(), name) is None:
        return f'"{literals.get(name, "http://planted.example")}"'
    return "4321"


@pytest.mark.parametrize("name", sorted(NOT_IN_DISCOVERED_FILES))
def test_a_discovered_file_cannot_set_restricted_settings(
    empty_folder: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = f"{name} = {other_value(name)}"
    (empty_folder / "holdfast.toml").write_text(text)
    assert Settings.load() == Settings()
    (record,) = caplog.records
    message = record.getMessage()
    assert (record.name, record.levelno) == ("holdfast.settings", logging.WARNING)
    assert (
        f"{str(empty_folder / 'holdfast.toml')!r}: ignored {name}, which only a file that you name may set" in message
    )
    assert "--config holdfast.toml" in message
    assert "HOLDFAST_CONFIG" in message
    assert "planted.example" not in message
    caplog.clear()
    assert getattr(Settings.load("holdfast.toml"), name) != getattr(Settings(), name)
    assert caplog.records == []


def test_a_named_file_sets_everything_without_a_warning(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (empty_folder / "holdfast.toml").write_text('url = "http://127.0.0.1:9"\nmodel_base_url = "http://127.0.0.1:9/v1"')
    settings, source = Settings.load_with_source("holdfast.toml")
    assert (settings.url, settings.model_base_url) == ("http://127.0.0.1:9", "http://127.0.0.1:9/v1")
    assert source == SettingsSource(str(empty_folder / "holdfast.toml"), named=True, used=("url", "model_base_url"))
    monkeypatch.setenv("HOLDFAST_CONFIG", str(empty_folder / "holdfast.toml"))
    assert Settings.load() == settings
    assert caplog.records == []


def test_a_discovered_file_sets_harmless_settings(empty_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    values: dict[str, Any] = {"tool_output_threshold": 1, "tool_output_preview": 10**12, "sqlite_idle_readers": 10**12}
    lines = [f"{name} = {value}" for name, value in values.items()]
    (empty_folder / "holdfast.toml").write_text("\n".join([*lines, f'log_format = "{get_args(LogFormat)[-1]}"']))
    assert Settings.load() == Settings(**values, log_format="console")
    assert caplog.records == []
    with holdfast.connect(empty_folder / "data") as client:  # even extreme values of these settings do no harm
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
def test_an_invalid_discovered_file_is_ignored_with_a_warning(
    empty_folder: Path, content: bytes, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    (empty_folder / "holdfast.toml").write_bytes(content)
    before = time.monotonic()
    assert Settings.load() == Settings()
    assert time.monotonic() - before < 2
    (record,) = caplog.records
    assert problem in record.getMessage()
    assert record.getMessage().isprintable()


def test_the_warning_about_a_discovered_file_is_limited_in_length(
    empty_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (empty_folder / "holdfast.toml").write_text("\n".join(f"{'x' * 500}{n} = 1" for n in range(100)))
    assert Settings.load() == Settings()
    assert len(caplog.text) < 2_000
    assert "and 90 more" in caplog.text


def test_an_unreadable_discovered_file_is_ignored(empty_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (empty_folder / "holdfast.toml").symlink_to("holdfast.toml")
    (empty_folder / "mine.toml").symlink_to(empty_folder)
    assert Settings.load() == Settings()
    with pytest.raises(InvalidArgumentError, match="there is no file"):
        Settings.load("mine.toml")


def test_a_deleted_current_folder_has_no_settings_file(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty_folder / "gone").mkdir()
    monkeypatch.chdir(empty_folder / "gone")
    (empty_folder / "gone").rmdir()
    assert Settings.load() == Settings()


def test_only_the_current_folder_is_searched(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty_folder / "holdfast.toml").write_text("tool_output_threshold = 500")
    (empty_folder / ".env").write_text("HOLDFAST_URL=http://127.0.0.1:9\nHOLDFAST_CONFIG=holdfast.toml")
    assert Settings.load().url is None
    (empty_folder / "below").mkdir()
    monkeypatch.chdir(empty_folder / "below")
    assert Settings.load() == Settings()


@pytest.mark.parametrize(
    ("path", "file"),
    [("data", "data/holdfast.db"), ("chat.db", "chat.db"), ("deep/chat.sqlite3", "deep/chat.sqlite3")],
)
def test_a_path_is_a_folder_unless_it_ends_like_a_database_file(empty_folder: Path, path: str, file: str) -> None:
    assert Settings(path=path).database_file() == str(empty_folder / file)


def test_an_existing_folder_with_the_suffix_of_a_file_is_a_folder(empty_folder: Path) -> None:
    (empty_folder / "chat.db").mkdir()
    assert Settings(path="chat.db").database_file() == str(empty_folder / "chat.db" / "holdfast.db")


def test_the_default_database_is_in_the_data_folder_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere/share")
    assert Settings().database_file() == "/somewhere/share/holdfast/holdfast.db"


def test_computing_in_one_thread_is_the_default_and_can_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    limit_computing_threads()
    assert (os.environ["OPENBLAS_NUM_THREADS"], os.environ["OMP_NUM_THREADS"]) == ("1", "4")
