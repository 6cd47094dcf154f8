"""The options that every command accepts: the database or server, the caller, and the output format."""

import copy
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec
import typer

import holdfast
from holdfast.config import Settings
from holdfast.config_file import SettingsSource

Format = Literal["table", "json", "jsonl"]
SERVER_SCHEMES = ("http://", "https://")
DATABASE_SCHEMES = ("postgresql://", "postgres://")


@dataclass
class SharedOptions:
    """The values of the shared options. The context of every command has them as `obj`."""

    path: str | None = None
    url: str | None = None
    api_key: str | None = None
    account: str | None = None
    user: str | None = None
    agent: str | None = None
    output: Format | None = None
    config: str | None = None
    traceback: bool | None = None

    @property
    def is_table(self) -> bool:
        return self.output in {None, "table"}

    def load_settings(self) -> tuple[Settings, SettingsSource]:
        """Load the settings of the file and the environment. `target` adds the options of the command line."""
        return Settings.load_with_source(self.config)

    def load_and_report_settings(self) -> Settings:
        """Load the settings, and report warnings and the use of a file that was not given explicitly."""
        settings, source = self.load_settings()
        if self.is_table and source.used and not source.named:
            typer.echo(source.describe(), err=True)
        self.print_warnings(source)
        return settings

    def print_warnings(self, source: SettingsSource) -> None:
        """Print the warnings about settings to standard error, in every output format."""
        for warning in source.warnings:
            typer.echo(f"warning: {warning}", err=True)

    def validate_target(self) -> None:
        """Raise an error if `--path` or `--url` is invalid, or if both were given."""
        if self.path is not None and self.url is not None:
            raise typer.BadParameter("use only one: a database or a server", param_hint="--path and --url")
        if self.url is not None and not self.url.startswith(SERVER_SCHEMES):
            raise typer.BadParameter(f"{self.url!r} does not begin with http:// or https://", param_hint="--url")
        if self.path is not None and self.path.startswith(SERVER_SCHEMES):
            raise typer.BadParameter(f"{self.path!r} is a server; use --url", param_hint="--path")
        if self.path == "":
            raise typer.BadParameter("is empty; use a folder, a file or a postgresql:// URL", param_hint="--path")

    def target(self) -> str | None:
        """The path or URL that was given, or None to use the settings."""
        self.validate_target()
        return self.url or self.path

    def open_client(self, settings: Settings | None = None, *, run_tasks: bool = False) -> "holdfast.Client":
        """Open a client. With `run_tasks` it also runs background tasks; a short command should not wait for them."""
        target = self.target()
        settings = settings or self.load_and_report_settings()
        if not run_tasks:
            settings = msgspec.structs.replace(settings, worker_threads=0)
        return holdfast.connect(
            target,
            api_key=self.api_key,
            account=self.account,
            user=self.user,
            agent=self.agent,
            settings=settings,
        )

    def location(self, settings: Settings) -> str:
        """The URL of the server, the URL of the database without its password, or the path of the file."""
        target = self.target() or settings.url or settings.path
        if target is not None and target.startswith(SERVER_SCHEMES):
            return target
        if target is not None and target.startswith(DATABASE_SCHEMES):
            return without_password(target)
        return settings.database_file(target)


def without_password(url: str) -> str:
    """Mask the password in a URL.

    >>> without_password("postgresql://ann:secret@db.example:5432/holdfast")
    'postgresql://ann:***@db.example:5432/holdfast'
    """
    pieces = urlsplit(url)
    names, at, host = pieces.netloc.rpartition("@")
    user, colon, _ = names.partition(":")
    query = "&".join("password=***" if item.startswith("password=") else item for item in pieces.query.split("&"))
    return urlunsplit(pieces._replace(netloc=f"{user}:***{at}{host}" if colon else pieces.netloc, query=query))


def get(ctx: typer.Context) -> SharedOptions:
    shared: SharedOptions = ctx.obj
    return shared


PathOption = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="PATH",
        show_default=False,
        help="The database: a folder, an SQLite file or a postgresql:// URL (or HOLDFAST_PATH).",
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        show_default=False,
        help="The server to use instead of a database, such as http://127.0.0.1:1933 (or HOLDFAST_URL).",
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        metavar="KEY",
        show_default=False,
        help="The API key for the server (or HOLDFAST_API_KEY).",
    ),
]
AccountOption = Annotated[
    str | None,
    typer.Option("--account", metavar="NAME", show_default=False, help="The account to use. Default: `default`."),
]
UserOption = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", show_default=False, help="The user to act as. Default: `default`."),
]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="NAME",
        show_default=False,
        help="The agent that acts for the user, stored with messages. Default: `default`.",
    ),
]
OutputOption = Annotated[
    Format | None,
    typer.Option(
        "--output",
        "-o",
        metavar="table|json|jsonl",
        show_default=False,
        help="The output format: a table, one JSON document, or one line of JSON per item.",
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        show_default=False,
        help="The settings file (or HOLDFAST_CONFIG). Otherwise a `holdfast.toml` in the current folder is used, for a"
        " few settings only.",
    ),
]
TracebackOption = Annotated[
    bool | None,
    typer.Option("--traceback", show_default=False, help="Print the Python traceback of an error."),
]


def set_options(
    ctx: typer.Context,
    path: PathOption = None,
    url: UrlOption = None,
    api_key: KeyOption = None,
    account: AccountOption = None,
    user: UserOption = None,
    agent: AgentOption = None,
    output: OutputOption = None,
    config: ConfigOption = None,
    traceback: TracebackOption = None,
) -> None:
    show_help(ctx)
    shared = get(ctx)
    shared.path, shared.url, shared.api_key = path, url, api_key
    shared.account, shared.user, shared.agent = account, user, agent
    shared.output, shared.config, shared.traceback = output, config, traceback


def show_help(ctx: typer.Context) -> None:
    """Print the help of a group that was called without a command, and exit."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help().rstrip())
        raise typer.Exit(2)


def add_to_commands(root: Any) -> None:
    """Accept the shared options after a command's name, too.

    A command's help lists only `--output` of them, so that its own options stay easy to find.
    """
    names = SharedOptions.__dataclass_fields__
    shared_params = [param for param in root.params if param.name in names]
    for command in list_commands(root):
        for param in shared_params:
            copied = copy.copy(param)
            copied.expose_value = False
            copied.hidden = param.name != "output"
            copied.callback = _store_option
            command.params.append(copied)


def list_commands(group: Any) -> list[Any]:
    """All commands below a group."""
    commands = []
    for command in group.commands.values():
        commands += list_commands(command) if hasattr(command, "commands") else [command]
    return commands


def _store_option(ctx: typer.Context, param: Any, value: Any) -> Any:
    if value is not None:
        setattr(get(ctx), param.name, value)
    return value
