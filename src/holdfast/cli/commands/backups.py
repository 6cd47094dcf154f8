"""`holdfast backup` and `restore`: copies of an SQLite database."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from holdfast import lazy
from holdfast.cli import help_texts, options, output
from holdfast.cli.commands.tree.file_changes import restore_file
from holdfast.cli.options import DATABASE_SCHEMES, SERVER_SCHEMES, SharedOptions
from holdfast.cli.progress import progress_bar
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.errors import FailedPreconditionError
from holdfast.model.uris import SCHEME

app = typer.Typer()


@app.command(epilog=help_texts.example("backup ./backups/monday.db", "backup /mnt/backup/holdfast.db --overwrite"))
def backup(
    ctx: typer.Context,
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="The file to write the backup to.", show_default=False)
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    allow_damage: Annotated[
        bool, typer.Option("--allow-damage", help="Back up a database that is damaged, as it is.")
    ] = False,
) -> None:
    """Write a backup of an SQLite database, which may be in use.

    The backup has everything that was acknowledged before the command, of all accounts. It is written under
    a temporary name, checked, and renamed. For PostgreSQL use pg_dump or pg_basebackup.
    """
    shared = options.get(ctx)
    settings = shared.load_and_report_settings()
    name = _database_name(shared, settings, "backup TARGET")
    with closing(open_database(name, settings)) as database, progress_bar("backup") as progress:
        written = lazy.load("holdfast.store.backups").back_up(
            database, target.absolute(), progress, overwrite=overwrite, allow_damage=allow_damage
        )
    state = f"it has {written.damaged_rows} damaged rows" if written.damaged_rows else "it was checked"
    output.print_result(ctx, written, f"wrote {written.bytes:,} bytes to {written.file}; {state}")


@app.command(
    epilog=help_texts.example(
        "restore ./backups/monday.db --path ./restored",
        "restore ./backups/monday.db --force",
        "restore viking://resources/draft.md",
        "restore viking://resources/notes.md --version 2",
    )
)
def restore(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="The file of a backup, or a viking:// address.", show_default=False),
    ],
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an existing database, which is kept under another name."),
    ] = False,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", help="Of an address: the version to restore.", show_default=False),
    ] = None,
) -> None:
    """Restore a backup of an SQLite database to the path that --path gives, or a file of the `viking://` tree.

    The backup is checked first. No process may have the database open. For PostgreSQL use pg_restore.

    At an address, what was removed last comes back; with --version, an earlier version becomes the newest one.
    """
    if source.startswith(SCHEME):
        restore_file(ctx, source, version)
        return
    shared = options.get(ctx)
    settings = shared.load_and_report_settings()
    name = _database_name(shared, settings, "restore SOURCE")
    if name is not None and name.startswith(DATABASE_SCHEMES):
        raise FailedPreconditionError(
            "holdfast restores SQLite files only; for PostgreSQL run `pg_restore --dbname=URL --clean --if-exists FILE`"
        )
    if name == ":memory:":
        raise FailedPreconditionError("a database in memory cannot be restored; give a folder or a file with --path")
    file = Path(settings.database_file(name)).absolute()
    with progress_bar("restore") as progress:
        restored = lazy.load("holdfast.store.backups").restore(Path(source).absolute(), file, progress, force=force)
    text = f"restored {restored.bytes:,} bytes to {restored.file}"
    if restored.previous_file is not None:
        text += f"; the database before is now {restored.previous_file}"
    output.print_result(ctx, restored, text)


def _database_name(shared: SharedOptions, settings: Settings, command: str) -> str | None:
    name = shared.target() or settings.url or settings.path
    if name is not None and name.startswith(SERVER_SCHEMES):
        raise FailedPreconditionError(
            f"{name} is a server, which copies no files; run `holdfast {command} --path PATH` on its machine"
        )
    return name
