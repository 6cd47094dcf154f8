"""`holdfast write`, `mkdir`, `mv`, `cp`, `rm`, `reindex`, `history` and `stat`: stored files and folders."""

import stat as file_modes
from typing import Annotated, Literal

import typer

from holdfast.cli import arguments, help_texts, options, output
from holdfast.cli.commands import tasks
from holdfast.cli.commands.tree.files import change_time
from holdfast.cli.output import Column

app = typer.Typer()

Uri = Annotated[
    str, typer.Argument(metavar="URI", help="An address, such as viking://resources/guide.md.", show_default=False)
]
FromUri = Annotated[str, typer.Argument(metavar="FROM_URI", help="A file or a folder.", show_default=False)]
ToUri = Annotated[str, typer.Argument(metavar="TO_URI", help="The new address.", show_default=False)]
Recursive = Annotated[bool, typer.Option("--recursive", "-r", help="With everything below a folder.")]
VERSION_COLUMNS = (
    Column("version", lambda row: row.version, align_right=True),
    Column("change", lambda row: row.change),
    Column("author", lambda row: row.author),
    Column("created", lambda row: row.created_at),
    Column("size", lambda row: row.size, align_right=True),
    Column("current", lambda row: "yes" if row.is_current else ""),
)


@app.command(
    epilog=help_texts.example(
        "write viking://resources/notes.md 'Deploy on Friday.'",
        "write viking://resources/log.md --append - < today.log",
    )
)
def write(
    ctx: typer.Context,
    uri: Uri,
    content: Annotated[
        str, typer.Argument(metavar="TEXT", help="The text, - for the standard input, or @FILE.", show_default=False)
    ],
    append: Annotated[bool, typer.Option("--append", help="Add the text to the end of the file.")] = False,
    create: Annotated[bool, typer.Option("--create", help="Fail if the file exists.")] = False,
    expected_version: Annotated[
        int | None,
        typer.Option("--if-version", metavar="N", help="Write only if this is its version.", show_default=False),
    ] = None,
) -> None:
    """Write a text file. Missing folders are made, and the earlier version is kept."""
    mode: Literal["append", "create", "replace"] = "append" if append else "create" if create else "replace"
    text = arguments.read_text(content, "TEXT")
    with options.get(ctx).open_client() as client:
        written = client.write(uri, text, mode=mode, expected_version=expected_version)
    change = "is" if written.content_updated else "already was"
    output.print_result(ctx, written, f"{written.uri} {change} version {written.version}.")


@app.command(epilog=help_texts.example("mkdir viking://resources/guides --description 'Guides of the team.'"))
def mkdir(
    ctx: typer.Context,
    uri: Uri,
    description: Annotated[str, typer.Option("--description", metavar="TEXT", help="What the folder is for.")] = "",
) -> None:
    """Make a folder, and the folders above it."""
    with options.get(ctx).open_client() as client:
        made = client.mkdir(uri, description=description)
    output.print_result(ctx, made, f"{made.uri} is a folder.")


@app.command(epilog=help_texts.example("mv viking://resources/draft.md viking://resources/guides/deploy.md"))
def mv(ctx: typer.Context, from_uri: FromUri, to_uri: ToUri) -> None:
    """Move or rename a file or a folder, with its history. An existing file at the new address is replaced."""
    with options.get(ctx).open_client() as client:
        moved = client.mv(from_uri, to_uri)
    output.print_result(ctx, moved, f"Moved {moved.from_uri} to {moved.to_uri}.")


@app.command(epilog=help_texts.example("cp viking://resources/guides viking://~/resources/guides --recursive"))
def cp(ctx: typer.Context, from_uri: FromUri, to_uri: ToUri, recursive: Recursive = False) -> None:
    """Copy a file, or with `--recursive` a folder."""
    with options.get(ctx).open_client() as client:
        copied = client.cp(from_uri, to_uri, recursive=recursive)
    files = output.count(copied.files_created, "file")
    output.print_result(ctx, copied, f"Copied {copied.from_uri} to {copied.to_uri} ({files}).")


@app.command(epilog=help_texts.example("rm viking://resources/draft.md", "rm viking://resources/guides --recursive"))
def rm(ctx: typer.Context, uri: Uri, recursive: Recursive = False) -> None:
    """Remove a file, or with `--recursive` a folder. `restore` brings it back."""
    with options.get(ctx).open_client() as client:
        removed = client.rm(uri, recursive=recursive)
    if not removed.estimated_deleted_count:
        output.print_result(ctx, removed, f"There is nothing at {removed.uri}.")
        return
    items = output.count(removed.estimated_deleted_count, "item")
    output.print_result(
        ctx, removed, f"Removed {removed.uri} ({items}). To undo this: holdfast restore '{removed.uri}'"
    )


def restore_file(ctx: typer.Context, uri: str, version: int | None) -> None:
    """Restore what was removed last at an address, or an earlier version of a file."""
    with options.get(ctx).open_client() as client:
        restored = client.restore(uri, version)
    now = f"its version is {restored.version}" if restored.version else output.count(restored.restored, "item")
    output.print_result(ctx, restored, f"Restored {restored.uri} ({now}).")


@app.command(epilog=help_texts.example("reindex viking://resources/guides", "reindex viking:// --parse"))
def reindex(
    ctx: typer.Context,
    uri: Uri,
    parse: Annotated[bool, typer.Option("--parse", help="Also parse files and summarise folders again.")] = False,
) -> None:
    """Index a stored file again, or all files below a folder. The exit code is 1 if the task fails."""
    with options.get(ctx).open_client(run_tasks=True) as client:
        started = client.reindex(uri, mode="semantic_and_vectors" if parse else "vectors_only", wait=False)
        task = tasks.wait_for_task(client, started.task_id)
    tasks.print_finished_task(ctx, task)


@app.command(epilog=help_texts.example("history viking://resources/notes.md"))
def history(
    ctx: typer.Context,
    uri: Uri,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="The maximum number of versions.")] = 100,
) -> None:
    """List the versions of a file, the newest first, also of one that was removed."""
    with options.get(ctx).open_client() as client:
        found = client.history(uri, limit=limit)
    output.print_rows(ctx, found.versions, VERSION_COLUMNS, found)
    if found.removed_at is not None:
        output.print_notice(f"It was removed; bring it back with: holdfast restore '{found.uri}'")


@app.command(epilog=help_texts.example("stat viking://resources/notes.md"))
def stat(ctx: typer.Context, uri: Uri) -> None:
    """Show the size, the version, the tags and the time of a file or a folder."""
    with options.get(ctx).open_client() as client:
        entry = client.stat(uri)
    kind = file_modes.S_IFDIR if entry.is_dir else file_modes.S_IFREG
    texts = {"mode": file_modes.filemode(kind | entry.mode), "mod_time": output.format_value(change_time(entry))}
    output.print_details(ctx, entry, exclude=("rel_path",), texts=texts)
