"""The settings, read from a file and from HOLDFAST_* variables. No other module reads the environment."""

import logging
import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec
import platformdirs

from holdfast import config_file
from holdfast.config_file import SettingsSource
from holdfast.errors import InvalidArgumentError
from holdfast.validation import convert, prebuild_decoder

AuthMode = Literal["dev", "api_key", "trusted"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "console"]
TokenCounter = Literal["estimate", "o200k_base", "cl100k_base"]
FailurePolicy = Literal["refuse", "wait", "proceed"]
ModelProvider = Literal["none", "openai", "anthropic"]
EmbedderKind = Literal["static", "minilm", "openai"]
ComputePlace = Literal["thread", "process"]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0)]
Limit = Annotated[int, msgspec.Meta(ge=0)]
"""0 is no limit."""

log = logging.getLogger("holdfast.settings")

_PYTHON_VARIABLES = ("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE")
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""The number of threads that libraries of numpy start."""
_KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@prebuild_decoder
class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings with their defaults. `HOLDFAST_TOOL_OUTPUT_THRESHOLD=500` sets `tool_output_threshold`."""

    path: str | None = None
    """Where the data is stored: a folder, a file, `:memory:` or a `postgresql://` URL; by default the data folder of
    the platform."""

    url: str | None = None
    """The server to use instead of a local database, such as `http://127.0.0.1:1933`."""

    api_key: str | None = None
    """The key to send to that server."""

    http_timeout_seconds: Seconds = 60.0
    """How long a client waits for a response."""

    http_attempts: Positive = 7
    """How often a client sends a request that gets no response, if it is safe to repeat."""

    max_message_bytes: Positive = 16 * 1024 * 1024
    """The largest JSON that a message may have; a larger message is refused."""

    tool_output_threshold: Positive = 8_192
    """Tool outputs with more characters are stored once, separately; their message holds a preview."""

    tool_output_preview: Positive = 1_000
    """How many characters of a large tool output the preview has."""

    token_counter: TokenCounter = "estimate"  # noqa: S105 - not that kind of token
    """How tokens are counted: estimate, or exactly as o200k_base or cl100k_base, which needs `holdfast[tokens]`."""

    auth_mode: AuthMode | None = None
    """How a server authenticates callers: dev, api_key or trusted; by default api_key with a root key, else dev."""

    root_api_key: str | None = None
    """The operator's key of a server."""

    key_cache_seconds: Annotated[float, msgspec.Meta(ge=0)] = 5.0
    """How long a server caches a valid key; a key revoked by another process stays valid that long."""

    max_body_bytes: Positive = 32 * 1024 * 1024
    """The largest request body that a server accepts."""

    max_upload_bytes: Positive = 256 * 1024 * 1024
    """The largest file that can be uploaded."""

    max_open_uploads: Positive = 100
    """How many uploads of a user may be incomplete at the same time."""

    max_open_upload_bytes: Positive = 1024 * 1024 * 1024
    """How many bytes the incomplete uploads of a user may have before a further one is refused."""

    max_response_bytes: Annotated[int, msgspec.Meta(ge=1_000)] = 8 * 1024 * 1024
    """About how many bytes a response with a cursor may have; clients read the rest with further requests."""

    max_buffered_bytes: Annotated[int, msgspec.Meta(ge=1_000)] = 64 * 1024 * 1024
    """How many bytes of large requests and responses a server holds in memory; further ones wait."""

    request_timeout_seconds: Seconds = 30.0
    """How long a request may take, from its header to its response. The limits of PostgreSQL transactions follow from
    it, also in an embedded client."""

    slow_client_seconds: Seconds = 20.0
    """How long a server waits for the rest of a request header, and for a client that reads nothing."""

    rate_limit_per_second: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """How many requests per second a server accepts from each user; 0 is no limit."""

    rate_limit_burst: Annotated[int, msgspec.Meta(ge=0)] = 0
    """How many requests a user may send at once; 0 means the same as `rate_limit_per_second`."""

    max_streams: Positive = 1_000
    """How many event streams a server keeps open in total."""

    max_streams_per_user: Positive = 50
    """How many event streams a server keeps open for each user."""

    stream_heartbeat_seconds: Seconds = 15.0
    """How often an idle event stream sends a heartbeat."""

    stream_poll_seconds: Seconds = 1.0
    """How often an event stream polls for changes by other processes on the same database."""

    shutdown_seconds: Seconds = 20.0
    """How long a server that is shutting down finishes accepted requests."""

    log_level: LogLevel = "info"
    """What a server logs: debug, info (every request), warning or error."""

    log_format: LogFormat = "auto"
    """How a server logs: json, console, or auto (console on a terminal, else json)."""

    idempotency_hours: Positive = 48
    """How long the result of an append is kept for its idempotency key; older results are deleted."""

    overview_tokens: Annotated[int, msgspec.Meta(ge=100)] = 2_000
    """The maximum length of an archive's overview without its rules. An overview also has at most two fifths of the
    tokens of its archive, unless the archive is small."""

    rules_tokens: Annotated[int, msgspec.Meta(ge=100)] = 1_500
    """The maximum length of the user's standing rules and preferences in an overview, over all archives."""

    earlier_tokens: Annotated[int, msgspec.Meta(ge=100)] = 1_000
    """The maximum length of what a session's overview adds about archives before the latest one."""

    after_failed_archive: FailurePolicy = "refuse"
    """What later commits do after one of the session failed: refuse (until it is retried or cancelled), wait, or
    proceed without it."""

    worker_threads: Annotated[int, msgspec.Meta(ge=0)] = 2
    """How many background tasks a server, a worker or an embedded client runs at the same time; 0 is none."""

    worker_poll_seconds: Seconds = 1.0
    """How often a server or a worker polls for tasks of other processes. An embedded client polls when it opens and,
    while it is used, once per lease."""

    task_lease_seconds: Seconds = 15.0
    """When a worker stops sending heartbeats, its lease expires after this time and another worker takes over. All
    processes on a database must use the same value."""

    task_attempts: Positive = 100
    """How often a task is attempted on temporary errors, such as an unavailable model, before it fails."""

    task_backoff_seconds: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    """The wait before the second attempt; each later wait is twice as long."""

    task_backoff_max_seconds: Seconds = 300.0
    """The longest wait between two attempts."""

    task_retention_hours: Positive = 168
    """How long a completed task can be looked up; failed and cancelled tasks are kept."""

    audit_retention_days: Limit = 0
    """How long audit lines are kept, in days; 0 keeps all. A checkpoint in the chain records what was removed."""

    audit_key: str | None = None
    """The key that signs the checkpoints of the audit log and the heads of its exports."""

    audit_head_file: str | None = None
    """The file to which a server or a worker adds the last line of each audit chain, every minute in which it changed.
    Keep it where nobody who can write to the database can change it."""

    close_seconds: Annotated[float, msgspec.Meta(ge=0)] = 5.0
    """How long background tasks may run on when a client, server or worker closes; unfinished ones are released."""

    compute: ComputePlace | None = None
    """Where long computations such as summaries run: process (a child process with the limits below) or thread (of
    this process); by default process in a server and a worker, and thread in an embedded client."""

    compute_seconds: Annotated[float, msgspec.Meta(ge=1)] = 60.0
    """How much CPU time one computation in the child process may take; a longer one fails."""

    compute_memory_mb: Annotated[int, msgspec.Meta(ge=256)] = 1_024
    """How much memory the child process may use, in megabytes; a computation that needs more fails."""

    sqlite_busy_timeout_ms: Milliseconds = 30_000
    """How long to wait while another process writes to the same file."""

    sqlite_idle_readers: Positive = 8
    """How many idle read connections are kept open."""

    postgres_pool_max: Positive = 16
    """The maximum number of PostgreSQL connections of one process."""

    postgres_wait_seconds: Seconds = 30.0
    """How long to wait for a PostgreSQL connection."""

    model_provider: ModelProvider = "none"
    """Which provider writes summaries: openai (or a compatible server), anthropic, or none (Holdfast itself)."""

    model_name: str | None = None
    """The name of the provider's model."""

    model_base_url: str | None = None
    """The URL of the model, such as `http://127.0.0.1:8080/v1`; by default the provider's own."""

    model_api_key: str | None = None
    """The API key for the model; by default from `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`."""

    model_timeout_seconds: Seconds = 120.0
    """How long to wait for a model's complete response."""

    model_concurrency: Positive = 4
    """How many model calls one process makes at the same time."""

    model_requests_per_minute: Limit = 0
    """How many model calls one process makes per minute; 0 is no limit."""

    model_tokens_per_minute: Limit = 0
    """How many tokens one process uses per minute, prompts and responses together; 0 is no limit."""

    model_input_tokens: Annotated[int, msgspec.Meta(ge=1_000)] = 16_000
    """The maximum prompt length of one call; longer conversations are summarised in several calls."""

    model_output_tokens: Annotated[int, msgspec.Meta(ge=100)] = 2_000
    """The maximum length of one response."""

    query_model_seconds: Annotated[float, msgspec.Meta(ge=0)] = 3.0
    """How long a search waits for the model to complete its query; 0 never asks the model."""

    embedder: EmbedderKind = "static"
    """Which embedder computes vectors: static (on this machine, no network), minilm (on this machine; better and much
    slower) or openai (or a compatible server)."""

    embedding_model: str | None = None
    """The name of the embedding model of a server."""

    embedding_model_path: str | None = None
    """The folder with the files model.safetensors and tokenizer.json of all-MiniLM-L6-v2, for the embedder minilm."""

    embedding_base_url: str | None = None
    """The URL of the embedding model; by default OpenAI's own."""

    embedding_api_key: str | None = None
    """The API key for the embedding model; by default from `OPENAI_API_KEY`."""

    vector_memory_bytes: Annotated[int, msgspec.Meta(ge=0)] = 512 * 1024 * 1024
    """How many bytes of vectors a process keeps in memory for searches; those that were used last are kept."""

    exact_vectors: Positive = 50_000
    """Up to how many vectors of a user are compared one by one. Above, PostgreSQL uses an index if it has the extension
    vector."""

    fetch_urls: bool = False
    """Whether users may add web pages: the server then fetches the URLs that they name, from public addresses only."""

    fetch_git: bool = False
    """Whether users may add Git repositories by their https URLs; this needs the program git."""

    allowed_fetch_hosts: str | None = None
    """Hosts that may be fetched from although their addresses are private, such as `wiki.local:8080`, separated by
    commas."""

    max_fetch_bytes: Positive = 64 * 1024 * 1024
    """The largest page or repository that is fetched."""

    fetch_seconds: Seconds = 60.0
    """How long one fetch may take."""

    resource_folders: str | None = None
    """Folders of this machine that users may add and watch by their paths, separated by commas."""

    rerank_base_url: str | None = None
    """The URL of a service with the endpoint `/rerank` that ranks what a search found; by default none."""

    rerank_model: str | None = None
    """The name of the service's model, if it needs one."""

    rerank_api_key: str | None = None
    """The API key for that service."""

    def __repr__(self) -> str:
        """Hides keys and passwords, since settings appear in logs and tracebacks."""
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, _conceal_secret(name, getattr(self, name))) for name in self.__struct_fields__]

    @classmethod
    def load(cls, file: str | Path | None = None, **overrides: Any) -> Self:
        """Load the defaults, then the file, then the environment, then `overrides`. Later values replace earlier ones.

        Without `file` and HOLDFAST_CONFIG, a `holdfast.toml` in the current folder is read. It may set only
        `config_file.DISCOVERED_FILE_MAY_SET`; a warning is logged for anything else in it.
        """
        settings, source = cls.load_with_source(file, **overrides)
        for warning in source.warnings:
            log.warning("%s", warning)
        return settings

    @classmethod
    def load_with_source(cls, file: str | Path | None = None, **overrides: Any) -> tuple[Self, SettingsSource]:
        """As `load`, but return the source with the settings, and leave its warnings to the caller."""
        from_file, source = config_file.read(file, cls.__struct_fields__, lambda name, value: _check(cls, name, value))
        return cls._from_values({**from_file, **_from_environment(cls), **overrides}), source

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        unknown = values.keys() - set(cls.__struct_fields__)
        if unknown:
            name = min(unknown)
            raise InvalidArgumentError(name, f"is not a setting; the settings are {', '.join(cls.__struct_fields__)}")
        for name, value in values.items():
            if name.endswith("_key") and not isinstance(value, str | None):
                # Not left to `convert`, whose error quotes the value: this is a key.
                raise InvalidArgumentError(name, "is not a string; put it in quotes")
        settings = convert(values, cls, strict=False)
        return msgspec.structs.replace(settings, **_keys_from_provider_variables(settings))

    def database_file(self, path: str | None = None) -> str:
        """The SQLite file for `path`, by default the setting `path`. In a folder, the file is `holdfast.db`."""
        path = path or self.path
        if path == ":memory:":
            return path
        try:
            location = Path(path or platformdirs.user_data_dir("holdfast", appauthor=False)).expanduser()
            is_file = location.is_file() or (
                location.suffix in {".db", ".sqlite", ".sqlite3"} and not location.is_dir()
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidArgumentError("path", f"{path!r} cannot be used: {error}") from None
        return str((location if is_file else location / "holdfast.db").absolute())


def child_environment() -> dict[str, str]:
    """The environment of a child process that runs Python: only what Python needs to start, and no settings or keys."""
    inherited = {name: os.environ[name] for name in _PYTHON_VARIABLES if name in os.environ}
    folders = [os.path.abspath(folder) for folder in sys.path if folder]  # noqa: PTH100 - kept as a string
    one_thread = dict.fromkeys(_THREAD_VARIABLES, "1")
    return {**inherited, **one_thread, "PYTHONPATH": os.pathsep.join(folders)}


def limit_computing_threads() -> None:
    """Let libraries of numpy compute in one thread, unless the user has set their number. Call it before their import.

    Their threads wait for each other with the CPU busy: on a machine with other work, a small matrix takes ten times
    as long with two threads as with one.
    """
    for name in _THREAD_VARIABLES:
        os.environ.setdefault(name, "1")


def _check(cls: type[Settings], name: str, value: Any) -> None:
    """Raise an error if a setting may not have this value."""
    convert({name: value}, cls, strict=False)


def _from_environment(cls: type[Settings]) -> dict[str, str]:
    names = {f"HOLDFAST_{field.upper()}": field for field in cls.__struct_fields__}
    return {names[name]: value for name, value in os.environ.items() if name in names}


def _keys_from_provider_variables(settings: Settings) -> dict[str, str | None]:
    """The API keys from the providers' usual variables, for those that are needed and not set."""
    providers = {
        "model_api_key": settings.model_provider,
        "embedding_api_key": settings.embedder,
    }
    return {
        field: os.environ.get(_KEY_VARIABLES[provider]) or None
        for field, provider in providers.items()
        if provider in _KEY_VARIABLES and getattr(settings, field) is None
    }


def _conceal_secret(name: str, value: Any) -> Any:
    """Mask a key, or the password in a URL: `//user:PASSWORD@host` or `password=PASSWORD`."""
    if not isinstance(value, str):
        return value
    return "***" if name.endswith("_key") else re.sub(r"(//[^/@:]*:|password=)[^/@&]+(?=@|&|$)", r"\1***", value)
