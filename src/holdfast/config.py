"""One frozen Settings, from a file and HOLDFAST_* variables. Nothing else reads the environment."""

import logging
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec
import platformdirs

from holdfast import config_file
from holdfast.config_file import Source
from holdfast.errors import InvalidArgumentError
from holdfast.validation import conform, prebuild_decoder

AuthMode = Literal["dev", "api_key", "trusted"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "console"]
TokenCounter = Literal["estimate", "o200k_base", "cl100k_base"]
FailurePolicy = Literal["refuse", "wait", "proceed"]
ModelProvider = Literal["none", "openai", "anthropic"]
EmbedderKind = Literal["static", "openai"]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0)]
Limit = Annotated[int, msgspec.Meta(ge=0)]

log = logging.getLogger("holdfast.settings")

_KEYS_OF = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@prebuild_decoder
class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every knob with its default. `HOLDFAST_TOOL_OUTPUT_THRESHOLD=500` sets `tool_output_threshold`."""

    path: str | None = None
    """Where everything is kept: a folder, a file, `:memory:` or a `postgresql://` URL; by default the data folder."""

    url: str | None = None
    """The server to use instead of storage of one's own, such as `http://127.0.0.1:1933`."""

    api_key: str | None = None
    """The key to show to that server."""

    http_timeout_seconds: Seconds = 60.0
    """How long a client waits for a server's answer."""

    http_attempts: Positive = 7
    """How often a client asks a server that does not answer, where asking again does no harm."""

    max_message_bytes: Positive = 16 * 1024 * 1024
    """A message whose JSON is larger than this is refused."""

    tool_output_threshold: Positive = 8_192
    """A tool output with more characters than this is stored apart, once, and previewed in its message."""

    tool_output_preview: Positive = 1_000
    """How many characters of a large tool output stay in the message."""

    token_counter: TokenCounter = "estimate"  # noqa: S105 - not that kind of token
    """How tokens are counted: estimate, or exactly as o200k_base or cl100k_base, which needs `holdfast[tokens]`."""

    auth_mode: AuthMode | None = None
    """How a server tells who calls: dev, api_key or trusted; by default dev without a root key and api_key with one."""

    root_api_key: str | None = None
    """The operator's key to a server."""

    key_cache_seconds: Annotated[float, msgspec.Meta(ge=0)] = 5.0
    """How long a server takes a key for good without looking it up: a key revoked elsewhere works that much longer."""

    max_body_bytes: Positive = 32 * 1024 * 1024
    """A server refuses a request body that is larger than this."""

    request_timeout_seconds: Seconds = 30.0
    """How long a server works on a request, from its head to its answer."""

    slow_client_seconds: Seconds = 20.0
    """How long a server waits for the rest of a request's head, and for a reader who takes nothing."""

    rate_limit_per_second: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """How many requests per second a server takes from each user; 0 is no limit."""

    rate_limit_burst: Annotated[int, msgspec.Meta(ge=0)] = 0
    """How many of them may come at once; 0 is as many as in a second."""

    max_streams: Positive = 1_000
    """How many event streams a server keeps open in all."""

    max_streams_per_user: Positive = 50
    """How many event streams a server keeps open for each user."""

    stream_heartbeat_seconds: Seconds = 15.0
    """How often a silent stream says that it is still there."""

    stream_poll_seconds: Seconds = 1.0
    """How often a stream looks for what other processes wrote to the same database."""

    shutdown_seconds: Seconds = 20.0
    """How long a server that was told to stop finishes what it accepted."""

    log_level: LogLevel = "info"
    """What a server logs: debug, info (every request), warning or error."""

    log_format: LogFormat = "auto"
    """How a server logs: json, console, or auto: console on a terminal, else json."""

    idempotency_hours: Positive = 48
    """How long the result of an append is remembered for its idempotency key; older ones are forgotten in time."""

    overview_tokens: Annotated[int, msgspec.Meta(ge=100)] = 2_000
    """The most that the overview of an archive may have, its rules aside; and no more than two fifths of the
    archive, unless that is small."""

    rules_tokens: Annotated[int, msgspec.Meta(ge=100)] = 1_500
    """The most that the user's standing rules and preferences may have in an overview, those of all archives in all."""

    earlier_tokens: Annotated[int, msgspec.Meta(ge=100)] = 1_000
    """The most that a session's overview adds about the archives before the latest one."""

    after_failed_archive: FailurePolicy = "refuse"
    """What later commits of a session do while one has failed: refuse (until it is retried or cancelled), wait, or
    proceed without it."""

    worker_threads: Annotated[int, msgspec.Meta(ge=0)] = 2
    """How many background tasks a server, a worker or an embedded client works on at the same time; 0 is none."""

    worker_poll_seconds: Seconds = 1.0
    """How often a server or a worker looks for tasks that other processes left; an embedded client looks at its opening
    and, while it is used, once per lease."""

    task_lease_seconds: Seconds = 15.0
    """How long a task stays with a worker that has stopped breathing, before another takes over."""

    task_attempts: Positive = 100
    """How often what may pass by itself, such as a model that does not answer, is tried before a task has failed."""

    task_backoff_seconds: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    """How long to wait before the second attempt; each wait is twice the one before."""

    task_backoff_max_seconds: Seconds = 300.0
    """The longest wait between two attempts."""

    task_retention_hours: Positive = 168
    """How long a task that was completed can be looked up; one that failed or was cancelled stays."""

    close_seconds: Annotated[float, msgspec.Meta(ge=0)] = 5.0
    """How long closing a client, a server or a worker lets background work finish; others can take what is left."""

    sqlite_busy_timeout_ms: Milliseconds = 30_000
    """How long to wait for another process that is writing to the same file."""

    sqlite_idle_readers: Positive = 8
    """How many read connections are kept open between reads."""

    postgres_pool_max: Positive = 16
    """The most connections one process holds to PostgreSQL."""

    postgres_wait_seconds: Seconds = 30.0
    """How long to wait for a connection to PostgreSQL before giving up."""

    model_provider: ModelProvider = "none"
    """Who writes summaries: openai (or any server that speaks its protocol), anthropic, or none: Holdfast itself."""

    model_name: str | None = None
    """Which of the provider's models."""

    model_base_url: str | None = None
    """Where the model is, such as `http://127.0.0.1:8080/v1`; by default at the provider's own address."""

    model_api_key: str | None = None
    """The key to the model; by default from `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`."""

    model_timeout_seconds: Seconds = 120.0
    """How long to wait for a model's whole answer."""

    model_concurrency: Positive = 4
    """How many calls of the model one process makes at the same time."""

    model_requests_per_minute: Limit = 0
    """How many calls one process makes in a minute; 0 is no limit."""

    model_tokens_per_minute: Limit = 0
    """How many tokens one process uses in a minute, prompts and answers together; 0 is no limit."""

    model_input_tokens: Annotated[int, msgspec.Meta(ge=1_000)] = 16_000
    """The most that one call is given to read; longer conversations are read in several calls."""

    model_output_tokens: Annotated[int, msgspec.Meta(ge=100)] = 2_000
    """The most that one call may answer."""

    embedder: EmbedderKind = "static"
    """Who turns texts into vectors: static (on this machine, no network) or openai (any server of its protocol)."""

    embedding_model: str | None = None
    """Which of that server's models."""

    embedding_base_url: str | None = None
    """Where the embedding model is; by default at OpenAI's own address."""

    embedding_api_key: str | None = None
    """The key to the embedding model; by default from `OPENAI_API_KEY`."""

    def __repr__(self) -> str:
        """Without keys and passwords: settings end up in logs and tracebacks."""
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, _concealed(name, getattr(self, name))) for name in self.__struct_fields__]

    @classmethod
    def load(cls, file: str | Path | None = None, **overrides: Any) -> Self:
        """Defaults, then the file, then the environment, then `overrides`; each wins over the one before.

        Without `file` and HOLDFAST_CONFIG, a `holdfast.toml` in the current folder is read, which may set little
        (`configfile.FOUND_FILE_MAY_SET`): what is ignored of it is logged as a warning.
        """
        settings, source = cls.load_with_source(file, **overrides)
        for warning in source.warnings:
            log.warning("%s", warning)
        return settings

    @classmethod
    def load_with_source(cls, file: str | Path | None = None, **overrides: Any) -> tuple[Self, Source]:
        """As `load`, with the file they were read from; what is ignored of it is for the caller to say."""
        read, source = config_file.read(file, cls.__struct_fields__, lambda name, value: _check(cls, name, value))
        return cls._combine({**read, **_from_environment(cls), **overrides}), source

    @classmethod
    def _combine(cls, values: dict[str, Any]) -> Self:
        unknown = values.keys() - set(cls.__struct_fields__)
        if unknown:
            name = min(unknown)
            raise InvalidArgumentError(name, f"is not a setting; the settings are {_listed(cls)}")
        for name, value in values.items():
            if name.endswith("_key") and not isinstance(value, str | None):
                raise InvalidArgumentError(name, "is not text; put it in quotes")  # without showing it
        settings = conform(values, cls, strict=False)
        return msgspec.structs.replace(settings, **_usual_keys(settings))

    def database_file(self, path: str | None = None) -> str:
        """The SQLite file for `path`, or for the one set here; a folder gets `holdfast.db` inside it."""
        path = path or self.path
        if path == ":memory:":
            return path
        try:
            place = Path(path or platformdirs.user_data_dir("holdfast", appauthor=False)).expanduser()
            is_file = place.is_file() or (place.suffix in {".db", ".sqlite", ".sqlite3"} and not place.is_dir())
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidArgumentError("path", f"{path!r} cannot be used: {error}") from None
        return str((place if is_file else place / "holdfast.db").absolute())


def _check(cls: type[Settings], name: str, value: Any) -> None:
    conform({name: value}, cls, strict=False)


def _from_environment(cls: type[Settings]) -> dict[str, str]:
    names = {f"HOLDFAST_{field.upper()}": field for field in cls.__struct_fields__}
    return {names[name]: value for name, value in os.environ.items() if name in names}


def _usual_keys(settings: Settings) -> dict[str, str | None]:
    """Keys from where the providers' own programs look for them, if they are needed and not set here."""
    providers = {
        "model_api_key": settings.model_provider,
        "embedding_api_key": settings.embedder,
    }
    return {
        field: os.environ.get(_KEYS_OF[provider]) or None
        for field, provider in providers.items()
        if provider in _KEYS_OF and getattr(settings, field) is None
    }


def _concealed(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return "***" if name.endswith("_key") else re.sub(r"(//[^/@:]*:|password=)[^/@&]+(?=@|&|$)", r"\1***", value)


def _listed(cls: type[Settings]) -> str:
    return ", ".join(cls.__struct_fields__)
