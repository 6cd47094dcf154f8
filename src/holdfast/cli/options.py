"""What holds for every command, said before or behind its name: where Holdfast is, who calls, how to print."""

import copy
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec
import typer

import holdfast
from holdfast.config import Settings
from holdfast.config_file import Source

Format = Literal["table", "json", "jsonl"]
SERVERS = ("http://", "https://")
DATABASES = ("postgresql://", "postgres://")


@dataclass
class Choices:
    """Filled in while the command line is read: the context of every command has it as `obj`."""

    path: str | None = None
    url: str | None = None
    api_key: str | None = None
    account: str | None = None
    user: str | None = None
    output: Format | None = None
    config: str | None = None
    traceback: bool | None = None

    @property
    def for_people(self) -> bool:
        return self.output in {None, "table"}

    def load(self) -> tuple[Settings, Source]:
        """The settings of the file and the environment; what the command line says comes on top, in `target`."""
        return Settings.load_with_source(self.config)

    def settings(self) -> Settings:
        """As `load`; a file that was found and not named is noted beside the output."""
        settings, source = self.load()
        if self.for_people and source.used and not source.named:
            typer.echo(source.described(), err=True)
        self.warn(source)
        return settings

    def warn(self, source: Source) -> None:
        """Say what was ignored, however the output is printed: it goes beside it."""
        for warning in source.warnings:
            typer.echo(f"warning: {warning}", err=True)

    def target(self) -> str | None:
        """The path or URL that was named, or None to go by the settings."""
        if self.path is not None and self.url is not None:
            raise typer.BadParameter("give one of them: a place of your own or a server", param_hint="--path and --url")
        if self.url is not None and not self.url.startswith(SERVERS):
            raise typer.BadParameter(f"{self.url!r} does not begin with http:// or https://", param_hint="--url")
        if self.path is not None and self.path.startswith(SERVERS):
            raise typer.BadParameter(f"{self.path!r} is a server; name it with --url", param_hint="--path")
        if self.path == "":
            raise typer.BadParameter("is empty; name a folder, a file or a postgresql:// URL", param_hint="--path")
        return self.url or self.path

    def open(self, settings: Settings | None = None, *, works: bool = False) -> "holdfast.Client":
        """A client. Only one that `works` also does background work: a listing should not wait for a model."""
        target = self.target()
        chosen = settings or self.settings()
        if not works:
            chosen = msgspec.structs.replace(chosen, worker_threads=0)
        return holdfast.connect(target, api_key=self.api_key, account=self.account, user=self.user, settings=chosen)

    def where(self, settings: Settings) -> str:
        """The place in words: the server's URL, the database's without its password, or the file."""
        named = self.target() or settings.url or settings.path
        if named is not None and named.startswith(SERVERS):
            return named
        if named is not None and named.startswith(DATABASES):
            return without_password(named)
        return settings.database_file(named)


def without_password(url: str) -> str:
    """A URL that can be shown.

    >>> without_password("postgresql://ann:secret@db.example:5432/holdfast")
    'postgresql://ann:***@db.example:5432/holdfast'
    """
    pieces = urlsplit(url)
    names, at, host = pieces.netloc.rpartition("@")
    user, colon, _ = names.partition(":")
    query = "&".join("password=***" if item.startswith("password=") else item for item in pieces.query.split("&"))
    return urlunsplit(pieces._replace(netloc=f"{user}:***{at}{host}" if colon else pieces.netloc, query=query))


def of(ctx: typer.Context) -> Choices:
    chosen: Choices = ctx.obj
    return chosen


PathOption = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="PLACE",
        show_default=False,
        help="Where everything is kept: a folder, a file or a postgresql:// URL (or HOLDFAST_PATH).",
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        show_default=False,
        help="A server to use instead, such as http://127.0.0.1:1933 (or HOLDFAST_URL).",
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        metavar="KEY",
        show_default=False,
        help="The key to show to that server (or HOLDFAST_API_KEY).",
    ),
]
AccountOption = Annotated[
    str | None,
    typer.Option("--account", metavar="NAME", show_default=False, help="The account to act in; else `default`."),
]
UserOption = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", show_default=False, help="The user to act as; else `default`."),
]
OutputOption = Annotated[
    Format | None,
    typer.Option(
        "--output",
        "-o",
        metavar="table|json|jsonl",
        show_default=False,
        help="How to print: a table for people, one JSON document, or a line of JSON per item.",
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        show_default=False,
        help="The settings file (or HOLDFAST_CONFIG). A `holdfast.toml` here that is not named may set little.",
    ),
]
TracebackOption = Annotated[
    bool | None,
    typer.Option("--traceback", show_default=False, help="Show where in the program an error comes from."),
]


def choose(
    ctx: typer.Context,
    path: PathOption = None,
    url: UrlOption = None,
    api_key: KeyOption = None,
    account: AccountOption = None,
    user: UserOption = None,
    output: OutputOption = None,
    config: ConfigOption = None,
    traceback: TracebackOption = None,
) -> None:
    show_help(ctx)
    chosen = of(ctx)
    chosen.path, chosen.url, chosen.api_key = path, url, api_key
    chosen.account, chosen.user = account, user
    chosen.output, chosen.config, chosen.traceback = output, config, traceback


def show_help(ctx: typer.Context) -> None:
    """What a group of commands does when none of them is named."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help().rstrip())
        raise typer.Exit(2)


def offer_everywhere(root: Any) -> None:
    """Let the options of the whole program stand behind a command's name too, where people type them.

    Only `--output` is shown there: the others would drown the command's own.
    """
    names = Choices.__dataclass_fields__
    shared = [param for param in root.params if param.name in names]
    for command in commands_below(root):
        for param in shared:
            here = copy.copy(param)
            here.expose_value = False
            here.hidden = param.name != "output"
            here.callback = _remember
            command.params.append(here)


def commands_below(group: Any) -> list[Any]:
    found = []
    for command in group.commands.values():
        found += commands_below(command) if hasattr(command, "commands") else [command]
    return found


def _remember(ctx: typer.Context, param: Any, value: Any) -> Any:
    if value is not None:
        setattr(of(ctx), param.name, value)
    return value
