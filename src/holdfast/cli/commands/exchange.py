"""`holdfast import` and `export`: conversations from elsewhere, and everything as files."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from holdfast import lazy
from holdfast.cli import arguments, help_texts, options, output
from holdfast.cli.output import Column
from holdfast.cli.progress import bar

app = typer.Typer()
session = typer.Typer()

EXPORTED = (
    Column("session", lambda row: row.session_id),
    Column("messages", lambda row: row.messages, right=True),
    Column("state", lambda row: row.state),
)
IMPORTED = (
    Column("session", lambda row: row.session_id),
    Column("messages", lambda row: row.messages, right=True),
    Column("added", lambda row: row.added, right=True),
    Column("state", lambda row: row.state),
    Column("reason", lambda row: row.reason, gives_way=True),
)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write; made if missing.", show_default=False)]


@app.command(
    name="import", epilog=help_texts.example("import chat.jsonl --session-id chat_1", "import ./backup --dry-run")
)
def import_(
    ctx: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A file or a folder; - is the standard input.", show_default=False)
    ],
    format: Annotated[
        Literal["auto", "openai", "chatgpt", "locomo", "holdfast"],
        typer.Option(
            "--format", metavar="auto|openai|chatgpt|locomo|holdfast", help="What it is; auto looks for itself."
        ),
    ] = "auto",
    session_id: Annotated[
        str | None,
        typer.Option("--session-id", metavar="ID", help="The session to import into.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be imported, and change nothing.")] = False,
) -> None:
    """Import conversations; to do it again does no harm.

    It reads OpenAI-style chat as JSON or JSONL, the export of ChatGPT, LoCoMo-style JSON, and what `holdfast export`
    wrote.
    """
    text = arguments.text("-", "SOURCE") if source == "-" else None
    with options.of(ctx).open() as client, bar("importing") as progress:
        report = lazy.load("holdfast.exchange").import_path(
            client,
            None if source == "-" else Path(source),
            text=text,
            format=format,
            session_id=session_id,
            dry_run=dry_run,
            progress=progress,
        )
    output.rows(ctx, report.sessions, IMPORTED, report)
    added = sum(row.added for row in report.sessions)
    _sum_up(ctx, f"{added:,} messages {'would be' if dry_run else 'were'} added, from {report.format}.")
    if report.failed:
        raise typer.Exit(1)


@app.command(epilog=help_texts.example("export ./backup", "export ./backup --session chat_001 --session chat_002"))
def export(
    ctx: typer.Context,
    folder: Folder,
    sessions: Annotated[
        list[str] | None,
        typer.Option(
            "--session", metavar="ID", help="Only this session; can be given again for more.", show_default=False
        ),
    ] = None,
) -> None:
    """Write sessions out as files: the tree that `viking://` names."""
    _export(ctx, folder, sessions)


@session.command(name="export", epilog=help_texts.example("session export chat_001 ./backup"))
def export_session(ctx: typer.Context, session_id: help_texts.SessionId, folder: Folder) -> None:
    """Write one session out as files."""
    _export(ctx, folder, [session_id])


def _export(ctx: typer.Context, folder: Path, session_ids: list[str] | None) -> None:
    with options.of(ctx).open() as client, bar("exporting") as progress:
        report = lazy.load("holdfast.exchange").export_sessions(client, folder, session_ids, progress)
    output.rows(ctx, report.sessions, EXPORTED, report)
    _sum_up(ctx, f"{sum(row.messages for row in report.sessions):,} messages were written to {report.folder}.")


def _sum_up(ctx: typer.Context, sentence: str) -> None:
    if options.of(ctx).for_people:
        output.note(sentence)
