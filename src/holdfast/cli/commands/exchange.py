"""`holdfast import`, `export` and `pack`: conversations of other programs, sessions as files, and packs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from holdfast import lazy
from holdfast.cli import arguments, help_texts, options, output
from holdfast.cli.output import Column
from holdfast.cli.progress import progress_bar
from holdfast.model.tree.packs import PackExported, PackImported

app = typer.Typer()
session = typer.Typer()
pack = help_texts.group(
    "Export files and folders to a pack, one file with their versions, tags and relations, and import packs."
)

EXPORTED = (
    Column("session", lambda row: row.session_id),
    Column("messages", lambda row: row.messages, align_right=True),
    Column("state", lambda row: row.state),
)
IMPORTED = (
    Column("session", lambda row: row.session_id),
    Column("messages", lambda row: row.messages, align_right=True),
    Column("added", lambda row: row.added, align_right=True),
    Column("state", lambda row: row.state),
    Column("reason", lambda row: row.reason, shrinks=True),
)

Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="The folder to write to. It is created if missing.", show_default=False),
]

PackTarget = Annotated[Path, typer.Argument(metavar="FILE", help="The pack to write.", show_default=False)]
PackSource = Annotated[Path, typer.Argument(metavar="FILE", help="The pack to read.", show_default=False)]
CurrentOnly = Annotated[bool, typer.Option("--current-only", help="Leave out earlier versions of files.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")]
OnConflict = Annotated[
    Literal["fail", "overwrite", "skip"],
    typer.Option(
        "--on-conflict",
        metavar="fail|overwrite|skip",
        help="What to do if an address exists: fail, add a version to existing files, or leave them as they are.",
    ),
]


@app.command(
    name="import", epilog=help_texts.example("import chat.jsonl --session-id chat_1", "import ./exported --dry-run")
)
def import_(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="A file, a folder, or - for the standard input.", show_default=False),
    ],
    format: Annotated[
        Literal["auto", "openai", "chatgpt", "locomo", "holdfast"],
        typer.Option(
            "--format",
            metavar="auto|openai|chatgpt|locomo|holdfast",
            help="The format of the source; auto detects it.",
        ),
    ] = "auto",
    session_id: Annotated[
        str | None,
        typer.Option("--session-id", metavar="ID", help="The id of the imported session.", show_default=False),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be imported, without writing anything.")
    ] = False,
) -> None:
    """Import conversations. This is safe to repeat.

    Accepted formats are OpenAI-style messages as JSON or JSONL, ChatGPT's data export, LoCoMo JSON, and the folder of
    a `holdfast export`.
    """
    text = arguments.read_text("-", "SOURCE") if source == "-" else None
    with options.get(ctx).open_client() as client, progress_bar("importing") as progress:
        report = lazy.load("holdfast.exchange").import_path(
            client,
            None if source == "-" else Path(source),
            text=text,
            format=format,
            session_id=session_id,
            dry_run=dry_run,
            progress=progress,
        )
    output.print_rows(ctx, report.sessions, IMPORTED, report)
    added = sum(row.added for row in report.sessions)
    _print_summary(ctx, f"{added:,} messages {'would be' if dry_run else 'were'} added, from {report.format}.")
    if report.failed:
        raise typer.Exit(1)


@app.command(epilog=help_texts.example("export ./exported", "export ./exported --session chat_001 --session chat_002"))
def export(
    ctx: typer.Context,
    folder: Folder,
    sessions: Annotated[
        list[str] | None,
        typer.Option(
            "--session", metavar="ID", help="Export only this session. May be given several times.", show_default=False
        ),
    ] = None,
) -> None:
    """Export your own sessions as files, in the layout of the `viking://` tree."""
    _export(ctx, folder, sessions)


@session.command(name="export", epilog=help_texts.example("session export chat_001 ./exported"))
def export_session(ctx: typer.Context, session_id: help_texts.SessionId, folder: Folder) -> None:
    """Export one of your own sessions as files."""
    _export(ctx, folder, [session_id])


@pack.command(name="export", epilog=help_texts.example("pack export viking://resources/guide guide.ovpack"))
def export_pack(
    ctx: typer.Context,
    uri: Annotated[str, typer.Argument(metavar="URI", help="A stored file or folder.", show_default=False)],
    file: PackTarget,
    current_only: CurrentOnly = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a file or a folder to a pack."""
    with options.get(ctx).open_client() as client, progress_bar("exporting") as progress:
        done = client.export_pack(uri, file, versions=not current_only, overwrite=overwrite, on_progress=progress)
    output.print_result(ctx, done, f"{_counted(done)} of {done.uri} were written to {file}.")


@pack.command(name="backup", epilog=help_texts.example("pack backup all.ovpack"))
def back_up_pack(
    ctx: typer.Context, file: PackTarget, current_only: CurrentOnly = False, overwrite: Overwrite = False
) -> None:
    """Write all that you may change to one pack: the account's resources, your own resources and skills."""
    with options.get(ctx).open_client() as client, progress_bar("exporting") as progress:
        done = client.backup_pack(file, versions=not current_only, overwrite=overwrite, on_progress=progress)
    output.print_result(ctx, done, f"{_counted(done)} were written to {file}.")


@pack.command(
    name="import", epilog=help_texts.example("pack import guide.ovpack viking://resources/copies --on-conflict skip")
)
def import_pack(
    ctx: typer.Context,
    file: PackSource,
    parent: Annotated[str, typer.Argument(metavar="PARENT", help="The folder to import into.", show_default=False)],
    on_conflict: OnConflict = "fail",
) -> None:
    """Import a pack into a folder: all of it, or nothing if there is an error."""
    with options.get(ctx).open_client() as client, progress_bar("importing") as progress:
        done = client.import_pack(file, parent, on_conflict=on_conflict, on_progress=progress)
    output.print_result(ctx, done, _imported(done))


@pack.command(name="restore", epilog=help_texts.example("pack restore all.ovpack --on-conflict skip"))
def restore_pack(ctx: typer.Context, file: PackSource, on_conflict: OnConflict = "fail") -> None:
    """Bring back what a backup has, at the addresses where it was."""
    with options.get(ctx).open_client() as client, progress_bar("importing") as progress:
        done = client.restore_pack(file, on_conflict=on_conflict, on_progress=progress)
    output.print_result(ctx, done, _imported(done))


def _counted(done: PackExported) -> str:
    return f"{done.files:,} files in {done.folders:,} folders with {done.versions:,} versions"


def _imported(done: PackImported) -> str:
    return (
        f"{done.files:,} files and {done.folders:,} folders were imported to {done.uri};"
        f" {done.updated:,} files got a new version, {done.skipped:,} stay as they are."
    )


def _export(ctx: typer.Context, folder: Path, session_ids: list[str] | None) -> None:
    with options.get(ctx).open_client() as client, progress_bar("exporting") as progress:
        report = lazy.load("holdfast.exchange").export_sessions(client, folder, session_ids, progress)
    output.print_rows(ctx, report.sessions, EXPORTED, report)
    _print_summary(ctx, f"{sum(row.messages for row in report.sessions):,} messages were written to {report.folder}.")
    if report.other_mounts:
        _print_summary(ctx, f"Also exported: {', '.join(report.other_mounts)}.")


def _print_summary(ctx: typer.Context, sentence: str) -> None:
    if options.get(ctx).is_table:
        output.print_notice(sentence)
