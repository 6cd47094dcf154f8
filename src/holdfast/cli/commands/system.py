"""`holdfast serve`, `status`, `doctor` and `version`: the system itself."""

import platform
import sys
from typing import Annotated

import msgspec
import typer

import holdfast
from holdfast import lazy
from holdfast.cli import help_texts, options, output
from holdfast.cli.output import Column
from holdfast.config_file import NAME, Source
from holdfast.errors import FailedPreconditionError, PermissionDeniedError
from holdfast.model.base import WireStruct
from holdfast.model.system import Component

app = typer.Typer()

UNAVAILABLE = 5
COMPONENTS = (
    Column("component", lambda row: row.name),
    Column("healthy", lambda row: row.is_healthy),
    Column("status", lambda row: _in_a_line(row.status), gives_way=True),
)
PROTECTING = frozenset({"root_api_key", "auth_mode"})
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


class Version(WireStruct, frozen=True):
    holdfast: str
    python: str
    platform: str


class Status(WireStruct, frozen=True, kw_only=True):
    where: str
    settings_file: str | None
    version: str
    account_id: str
    user_id: str
    role: str
    is_healthy: bool
    errors: list[str]
    components: dict[str, Component]


@app.command(epilog=help_texts.example("serve --path ./data", "serve --port 8080"))
def serve(
    ctx: typer.Context,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="PORT", help="The port to listen on.")] = 1933,
) -> None:
    """Serve what `--path` holds over HTTP, until it is told to stop."""
    chosen = options.of(ctx)
    if chosen.url is not None:
        raise typer.BadParameter("is another server's; name what to serve with --path", param_hint="--url")
    settings, source = chosen.load()
    if settings.root_api_key is None and not PROTECTING.isdisjoint(source.ignored):
        raise FailedPreconditionError(_unprotected(source))
    settings = msgspec.structs.replace(settings, path=chosen.target() or settings.path, url=None)
    try:
        server = lazy.load("holdfast.http.server")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("holdfast"):
            raise
        raise FailedPreconditionError(
            f"the server needs its packages ({error.name} is missing): pip install 'holdfast[server]'"
        ) from None
    server.serve(settings, host, port, source)


@app.command(epilog=help_texts.example("status", "status --url http://127.0.0.1:1933"))
def status(ctx: typer.Context) -> None:
    """Show where Holdfast is, who you are there, and how it is doing."""
    chosen = options.of(ctx)
    settings, source = chosen.load()
    chosen.warn(source)
    with chosen.open(settings) as client:
        me = client.whoami()
        healthy, errors, components = client.check_health().healthy, [], {}
        if me.role != "user":
            try:
                system = client.system_health()
            except PermissionDeniedError:  # how the components are is for administrators
                pass
            else:
                healthy, errors, components = healthy and system.is_healthy, system.errors, system.components
    found = Status(
        where=chosen.where(settings),
        settings_file=source.file,
        version=holdfast.__version__,
        account_id=me.account_id,
        user_id=me.user_id,
        role=me.role,
        is_healthy=healthy,
        errors=errors,
        components=components,
    )
    if chosen.for_people:
        output.details(ctx, found, apart=["components"])
        if components:
            output.gap()
            output.rows(ctx, list(components.values()), COMPONENTS)
    else:
        output.details(ctx, found)
    if not healthy:
        raise typer.Exit(UNAVAILABLE)


@app.command(epilog=help_texts.example("doctor", "doctor --path ./data -o json"))
def doctor(ctx: typer.Context) -> None:
    """Check what Holdfast needs, and say what to do where it is amiss.

    It changes nothing. Each check is ok, warn or fail; the exit code is 1 if one fails.
    """
    chosen = options.of(ctx)
    chosen.target()
    findings = []
    for finding in lazy.load("holdfast.cli.commands.doctor").examine(chosen):
        findings.append(finding)
        if chosen.output != "json":
            remedy = f"; {finding.remedy}" if finding.remedy else ""
            said = f"{finding.said}{remedy}"
            output.line(ctx, finding, (finding.state, 4, STYLES[finding.state]), (finding.name, 10, ""), (said, 0, ""))
    if chosen.output == "json":
        output.document(findings)
    if any(finding.state == "fail" for finding in findings):
        raise typer.Exit(1)


@app.command(epilog=help_texts.example("version", "version -o json"))
def version(ctx: typer.Context) -> None:
    """Show the version of Holdfast and of the Python it runs on."""
    found = Version(holdfast.__version__, platform.python_version(), sys.platform)
    output.said(ctx, found, f"holdfast {found.holdfast} (Python {found.python}, {found.platform})")


def _unprotected(source: Source) -> str:
    """Why not to serve: whoever wrote that file wants keys to be asked for, and without it nobody would."""
    names = ", ".join(name for name in source.ignored if name in PROTECTING)
    return (
        f"{source.file!r} sets {names}, but nobody named it: without it this server would ask for no keys;"
        f" serve with --config {NAME}, or set HOLDFAST_ROOT_API_KEY"
    )


def _in_a_line(status: str) -> str:
    """The queue is told as a table, for published clients; its last line is the total."""
    *_, total = status.splitlines()
    if not total.startswith("TOTAL "):
        return status
    pending, running, failed = total.split()[1:]
    return f"{pending} pending, {running} in progress, {failed} failed"
