"""`holdfast serve`, `status`, `doctor` and `version`."""

import platform
import sys
from typing import Annotated

import msgspec
import typer

import holdfast
from holdfast import lazy
from holdfast.cli import help_texts, options, output
from holdfast.cli.output import Column
from holdfast.config_file import NAME, SettingsSource
from holdfast.errors import FailedPreconditionError, PermissionDeniedError
from holdfast.model.base import WireStruct
from holdfast.model.identity import DEFAULT_AGENT
from holdfast.model.system import Component

app = typer.Typer()

EXIT_UNAVAILABLE = 5
COMPONENTS = (
    Column("component", lambda row: row.name),
    Column("healthy", lambda row: row.is_healthy),
    Column("status", lambda row: row.summary, shrinks=True),
)
AUTH_SETTINGS = frozenset({"root_api_key", "auth_mode"})
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
    agent_id: str
    is_healthy: bool
    errors: list[str]
    components: dict[str, Component]


@app.command(epilog=help_texts.example("serve --path ./data", "serve --port 8080"))
def serve(
    ctx: typer.Context,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="PORT", help="The port to listen on.")] = 1933,
) -> None:
    """Serve a database over HTTP.

    The server runs until it is stopped with Ctrl-C or SIGTERM.
    """
    shared = options.get(ctx)
    if shared.url is not None:
        raise typer.BadParameter("cannot be used here; give the database to serve with --path", param_hint="--url")
    settings, source = shared.load_settings()
    if settings.root_api_key is None and not AUTH_SETTINGS.isdisjoint(source.ignored):
        raise FailedPreconditionError(_unprotected_message(source))
    settings = msgspec.structs.replace(settings, path=shared.target() or settings.path, url=None)
    try:
        server = lazy.load("holdfast.http.server")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("holdfast"):
            raise
        raise FailedPreconditionError(
            f"the server needs additional packages ({error.name} is missing): pip install 'holdfast[server]'"
        ) from None
    server.serve(settings, host, port, source)


@app.command(epilog=help_texts.example("status", "status --url http://127.0.0.1:1933"))
def status(ctx: typer.Context) -> None:
    """Show the database or server in use, the caller, and the system's health."""
    shared = options.get(ctx)
    settings, source = shared.load_settings()
    shared.print_warnings(source)
    with shared.open_client(settings) as client:
        caller = client.whoami()
        healthy, errors, components = client.check_health().healthy, [], {}
        if caller.role not in {"guest", "auditor"}:  # they may not see the components
            try:
                system = client.system_health(format="json")
            except PermissionDeniedError:  # the role of the caller has just been changed
                pass
            else:
                healthy, errors, components = healthy and system.is_healthy, system.errors, system.components
    status = Status(
        where=shared.location(settings),
        settings_file=source.file,
        version=holdfast.__version__,
        account_id=caller.account_id,
        user_id=caller.user_id,
        role=caller.role,
        agent_id=caller.agent_id,
        is_healthy=healthy,
        errors=errors,
        components=components,
    )
    if shared.is_table:
        default_agent = ["agent_id"] if caller.agent_id == DEFAULT_AGENT else []
        output.print_details(ctx, status, exclude=["components", *default_agent])
        if components:
            output.print_blank_line()
            output.print_rows(ctx, list(components.values()), COMPONENTS)
    else:
        output.print_details(ctx, status)
    if not healthy:
        raise typer.Exit(EXIT_UNAVAILABLE)


@app.command(epilog=help_texts.example("doctor", "doctor --path ./data --deep"))
def doctor(
    ctx: typer.Context,
    deep: Annotated[bool, typer.Option("--deep", help="Check every row and the whole file for damage.")] = False,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Put readable rows in place of damaged ones, which are kept in quarantine, and rebuild damaged"
            " indexes. Make a backup first.",
        ),
    ] = False,
) -> None:
    """Check the installation and the database, and suggest fixes.

    Nothing is changed without --fix. The result of each check is ok, warn or fail; the exit code is 1 if a check fails.
    """
    shared = options.get(ctx)
    shared.validate_target()
    findings = []
    checks = lazy.load("holdfast.cli.commands.doctor")
    for finding in checks.run_checks(shared, checks.CheckOptions(deep=deep or fix, fix=fix)):
        findings.append(finding)
        if shared.output != "json":
            text = f"{finding.result}; {finding.remedy}" if finding.remedy else finding.result
            state = (finding.state, 4, STYLES[finding.state])
            output.print_line(ctx, finding, state, (finding.name, 10, ""), (text, 0, ""))
    if shared.output == "json":
        output.print_json(findings)
    if any(finding.state == "fail" for finding in findings):
        raise typer.Exit(1)


@app.command(epilog=help_texts.example("version", "version -o json"))
def version(ctx: typer.Context) -> None:
    """Show the versions of Holdfast and Python."""
    versions = Version(holdfast.__version__, platform.python_version(), sys.platform)
    output.print_result(ctx, versions, f"holdfast {versions.holdfast} (Python {versions.python}, {versions.platform})")


def _unprotected_message(source: SettingsSource) -> str:
    """Describe why the server does not start: its settings file requires keys, but is ignored.

    A file that was only found in the current folder may not change these settings.
    """
    names = ", ".join(name for name in source.ignored if name in AUTH_SETTINGS)
    return (
        f"{source.file!r} sets {names}, but is ignored because it was not given explicitly; without it this server"
        f" would require no keys: start it with --config {NAME}, or set HOLDFAST_ROOT_API_KEY"
    )
