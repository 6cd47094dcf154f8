"""`holdfast audit`: list, export and verify the audit log."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from holdfast import lazy
from holdfast.cli import arguments, help_texts, options, output
from holdfast.cli.commands.sessions import confirm
from holdfast.cli.output import Column
from holdfast.cli.progress import progress_bar
from holdfast.engine.gate.ids import system_clock
from holdfast.model.audit import AuditVerification
from holdfast.store.database import EVERY_ACCOUNT

app = help_texts.group("List, export and verify the audit log.")

COLUMNS = (
    Column("number", lambda row: row.number, align_right=True),
    Column("time", lambda row: row.at),
    Column("user", lambda row: row.user_id),
    Column("action", lambda row: "(erased)" if row.erased else row.action),
    Column("outcome", lambda row: row.outcome),
    Column("resource", lambda row: row.resource, shrinks=True),
    Column("from", lambda row: " ".join(filter(None, (row.address, row.key_id))), shrinks=True),
)

Operator = Annotated[
    bool,
    typer.Option(
        "--operator", help="Use the log of operators: the creation and deletion of accounts.", show_default=False
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help="Check signatures with this key (or HOLDFAST_AUDIT_KEY).",
        show_default=False,
    ),
]
HeadsOption = Annotated[
    Path | None,
    typer.Option(
        "--heads",
        metavar="FILE",
        help="Check that the chain contains every head in this file, which the setting audit_head_file has named.",
        show_default=False,
    ),
]


@app.command(
    name="list",
    epilog=help_texts.example("audit list --resource chat_001 --since 7d", "audit list --outcome denied -o jsonl"),
)
def list_(
    ctx: typer.Context,
    resource: Annotated[
        str | None,
        typer.Option(
            "--resource",
            metavar="ID",
            help="Only lines about this session, user, account or task: the first word of their resource.",
            show_default=False,
        ),
    ] = None,
    user_id: Annotated[
        str | None, typer.Option("--user-id", metavar="ID", help="Only lines of this user.", show_default=False)
    ] = None,
    action: Annotated[
        str | None,
        typer.Option(
            "--action", metavar="NAME", help="Only lines of this action, such as OpenSession.", show_default=False
        ),
    ] = None,
    outcome: Annotated[
        Literal["done", "denied"] | None,
        typer.Option("--outcome", metavar="done|denied", help="Only lines with this outcome.", show_default=False),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only lines since then: 7d, 12h, or 2026-01-31T12:00:00Z.",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Only lines before then.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="The maximum number of lines.")] = 100,
    cursor: Annotated[
        str | None,
        typer.Option("--cursor", metavar="ID", help="Start after the line with this id.", show_default=False),
    ] = None,
    operator: Operator = False,
) -> None:
    """List audit lines, newest first."""
    with options.get(ctx).open_client() as client:
        list_lines = client.admin.list_operator_audit if operator else client.list_audit
        page = list_lines(
            limit=limit,
            cursor=cursor,
            resource=resource,
            user_id=user_id,
            action=action,
            outcome=outcome,
            since=_parse_time(since, "--since"),
            until=_parse_time(until, "--until"),
        )
    output.print_rows(ctx, page.records, COLUMNS, page)
    if page.next_cursor:
        output.print_notice(f"There are more lines; continue with --cursor {page.next_cursor}.")


@app.command(epilog=help_texts.example("audit export audit.jsonl", "audit verify audit.jsonl"))
def export(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, as JSON lines.", show_default=False)],
    operator: Operator = False,
) -> None:
    """Export the audit chain to a file that can be verified without the database."""
    with options.get(ctx).open_client() as client, progress_bar("exporting") as progress:
        head = client.export_audit(file, operator=operator, progress=progress)
    count = head.number - head.start_number
    output.print_result(ctx, head, f"{count:,} lines of {_log_of(head.account_id)} were written to {file}")


@app.command(
    epilog=help_texts.example("audit verify", "audit verify audit.jsonl", "audit verify --heads /mnt/worm/heads.jsonl")
)
def verify(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="An export. By default, the database is verified.", show_default=False),
    ] = None,
    heads: HeadsOption = None,
    key: KeyOption = None,
    operator: Operator = False,
) -> None:
    """Verify the audit chain. If something is wrong, name the place and exit with 1."""
    shared = options.get(ctx)
    settings = shared.load_and_report_settings()
    key = key or settings.audit_key
    with progress_bar("verifying") as progress:
        if file is not None:
            verify_file = lazy.load("holdfast.client.audit_files").verify_file
            result: AuditVerification = verify_file(file, heads=heads, key=key, progress=progress)
        else:
            with shared.open_client(settings) as client:
                result = client.verify_audit(heads=heads, key=key, operator=operator, progress=progress)
    output.print_result(ctx, result, _describe(result, with_heads=heads is not None))
    if result.problem is not None:
        raise typer.Exit(1)


@app.command(epilog=help_texts.example("audit head -o json"))
def head(ctx: typer.Context, operator: Operator = False) -> None:
    """Show the last line of the audit chain. Note its link where nobody can change it."""
    with options.get(ctx).open_client() as client:
        page = client.read_audit_chain(limit=1, operator=operator)
    output.print_details(ctx, page.head)


@app.command(epilog=help_texts.example("audit erase aud_019c2f --yes"))
def erase(
    ctx: typer.Context,
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...", help="The ids of the lines to erase, from `audit list -o json`.", show_default=False
        ),
    ],
    yes: help_texts.Yes = False,
) -> None:
    """Erase the content of audit lines. The chain can still be verified, and a new line records the erasure."""
    confirm(f"Erase the content of {len(ids)} audit lines?", yes=yes)
    with options.get(ctx).open_client() as client:
        result = client.admin.erase_audit(ids)
    output.print_result(ctx, result, f"erased the content of line {', '.join(map(str, result.numbers))}")


def _log_of(account_id: str) -> str:
    return "the log of operators" if account_id == EVERY_ACCOUNT else f"account {account_id}"


def _describe(result: AuditVerification, *, with_heads: bool) -> str:
    chain = f"The chain of {_log_of(result.account_id)}"
    if result.problem is not None:
        place = "" if result.problem.file_line is None else f" (line {result.problem.file_line} of the file)"
        return f"{chain} is not intact ({result.problem.kind}): {result.problem.message}{place}."
    numbers = f" from {result.first_number} to {result.last_number}" if result.lines else ""
    facts = [f"{result.lines:,} lines{numbers}"]
    facts += [f"{result.erased:,} erased"] if result.erased else []
    facts += [f"{result.unsealed:,} not sealed yet"] if result.unsealed else []
    facts += [f"{result.heads_checked:,} saved heads found"] if with_heads else []
    facts += {"checked": ["signatures checked"], "not checked": ["signature not checked"], "none": []}[result.signature]
    return f"{chain} is intact: {', '.join(facts)}; its last link is {result.link}."


def _parse_time(value: str | None, hint: str) -> datetime | None:
    """Parse a time, or a duration before now such as 7d."""
    if value is None:
        return None
    if re.fullmatch(r"[0-9]+[smhd]", value):
        seconds = system_clock() // 1_000_000 - (arguments.parse_seconds(value, hint) or 0)
        return datetime.fromtimestamp(max(0, seconds), UTC)
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise typer.BadParameter(
            f"{value!r} is neither a duration such as 7d nor a time such as 2026-01-31T12:00:00Z", param_hint=hint
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
