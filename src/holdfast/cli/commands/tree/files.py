"""`holdfast ls`, `tree`, `read`, `download`, `abstract` and `overview`: the `viking://` tree."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast import lazy
from holdfast.cli import help_texts, options, output, progress
from holdfast.cli.output import Column
from holdfast.errors import InvalidArgumentError
from holdfast.model.tree.files import FileEntry, FileList
from holdfast.model.uris import parse_uri

if TYPE_CHECKING:
    from holdfast import Client

app = typer.Typer()

Hidden = Annotated[bool, typer.Option("--all", "-a", help="Include names that begin with a dot.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", help="The maximum number of entries.")]
Offset = Annotated[int, typer.Option("--offset", metavar="N", help="The number of entries to skip.")]
FolderUri = Annotated[
    str,
    typer.Argument(
        metavar="[URI]", help="A folder, such as viking://session/chat_001. Default: the root.", show_default=False
    ),
]
SummaryUri = Annotated[
    str,
    typer.Argument(
        metavar="URI",
        help="A file, a folder, a session or an archive, such as viking://resources/manual.",
        show_default=False,
    ),
]
ROOT = "viking://"


def _name(entry: FileEntry) -> str:
    return f"{entry.rel_path}/" if entry.is_dir else entry.rel_path


def _indented_name(entry: FileEntry) -> str:
    return f"{'│ ' * entry.rel_path.count('/')}{entry.name}{'/' if entry.is_dir else ''}"


def _size(entry: FileEntry) -> int | None:
    """Return the size of a file; None for a folder, and for a view, whose size is not known before it is read."""
    return entry.size if entry.size or (entry.version and not entry.is_dir) else None


def change_time(entry: FileEntry) -> datetime | None:
    """Return when an entry changed. Folders that every account has never change."""
    return entry.mod_time if entry.mod_time.timestamp() else None


LIST_COLUMNS = (
    Column("name", _name),
    Column("size", _size, align_right=True),
    Column("changed", change_time),
    Column("abstract", lambda row: row.abstract, shrinks=True),
)
TREE_COLUMNS = (Column("name", _indented_name), *LIST_COLUMNS[1:])
EMPTY = "There are no entries."


@app.command(epilog=help_texts.example("ls viking://user", "ls viking://session/chat_001 --all --recursive"))
def ls(
    ctx: typer.Context,
    uri: FolderUri = ROOT,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="List everything below the folder.")] = False,
    hidden: Hidden = False,
    limit: Limit = 1_000,
    offset: Offset = 0,
) -> None:
    """List a folder of the `viking://` tree.

    A session is a folder; its files are read-only views of the database. The size of a file is shown if it is known
    without reading the file.
    """
    with options.get(ctx).open_client() as client:
        entries = client.ls(
            uri,
            recursive=recursive,
            output="agent",  # with the abstracts of folders, which a column shows
            show_all_hidden=hidden,
            node_limit=limit,
            offset=offset,
        )
    output.print_rows(ctx, entries, LIST_COLUMNS, empty=EMPTY)
    _print_if_more(entries, offset)


@app.command(epilog=help_texts.example("tree viking://session/chat_001", "tree viking:// --level-limit 5 --all"))
def tree(
    ctx: typer.Context,
    uri: FolderUri = ROOT,
    level_limit: Annotated[int, typer.Option("--level-limit", "-L", metavar="N", help="The maximum depth.")] = 3,
    hidden: Hidden = False,
    limit: Limit = 1_000,
    offset: Offset = 0,
) -> None:
    """Show everything below a folder of the `viking://` tree."""
    with options.get(ctx).open_client() as client:
        entries = client.tree(
            uri,
            output="agent",  # with the abstracts of folders, which a column shows
            show_all_hidden=hidden,
            level_limit=level_limit,
            node_limit=limit,
            offset=offset,
        )
    output.print_rows(ctx, entries, TREE_COLUMNS, empty=EMPTY)
    _print_if_more(entries, offset)


@app.command(
    epilog=help_texts.example(
        "read viking://session/chat_001/messages.jsonl",
        "read viking://session/chat_001/.meta.json --limit 5",
        "read 'viking://resources/manual/manual.pdf#12'",
        "read viking://resources/notes.md --version 2",
    )
)
def read(
    ctx: typer.Context,
    uri: Annotated[
        str,
        typer.Argument(
            metavar="URI",
            help="A file, such as viking://session/chat_001/messages.jsonl, or a part of one, as a search names it.",
            show_default=False,
        ),
    ],
    offset: Annotated[int, typer.Option("--offset", metavar="N", help="The number of lines to skip.")] = 0,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="The number of lines; -1 means all.")] = -1,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", help="An earlier version, as `history` lists them.", show_default=False),
    ] = None,
) -> None:
    """Print a file of the `viking://` tree."""
    with options.get(ctx).open_client() as client:
        if limit >= 0 or version is not None:
            output.print_text(ctx, client.read(uri, offset, limit, version=version), exact=True)
        elif options.get(ctx).is_table:
            for part in _read_parts(client, uri, offset):
                output.print_text(ctx, part, exact=True)
        else:
            output.print_text(ctx, "".join(_read_parts(client, uri, offset)))


@app.command(epilog=help_texts.example("abstract viking://resources/manual", "abstract viking://session/chat_001"))
def abstract(ctx: typer.Context, uri: SummaryUri) -> None:
    """Print the one-line summary of a file, a folder, a session or an archive."""
    with options.get(ctx).open_client() as client:
        output.print_text(ctx, client.abstract(uri))


@app.command(
    epilog=help_texts.example(
        "overview viking://resources/manual", "overview viking://session/chat_001/history/archive_001"
    )
)
def overview(ctx: typer.Context, uri: SummaryUri) -> None:
    """Print the full summary of a file, a folder, a session or an archive."""
    with options.get(ctx).open_client() as client:
        output.print_text(ctx, client.overview(uri))


@app.command(
    epilog=help_texts.example(
        "download viking://resources/guide/guide.pdf", "download viking://session/chat_001/messages.jsonl chat.jsonl"
    )
)
def download(
    ctx: typer.Context,
    uri: Annotated[
        str,
        typer.Argument(metavar="URI", help="A file, such as viking://resources/guide/guide.pdf.", show_default=False),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Where to write it. Default: its name, in the current folder."),
    ] = None,
    version: Annotated[int | None, typer.Option("--version", metavar="N", help="An earlier version of it.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a file of the `viking://` tree to a local file, as it is stored."""
    target = file or Path(_file_name(uri))
    with options.get(ctx).open_client() as client, progress.progress_bar("Downloading") as show:
        if target.is_dir() and client.stat(uri).is_dir:
            raise InvalidArgumentError(
                "URI", f"{uri} is a folder; download a file in it, or use `holdfast pack export`"
            )
        done = client.download(uri, target, version=version, overwrite=overwrite, progress=show)
    output.print_result(ctx, done, f"Wrote {done.size:,} bytes to {done.target}.")


def _file_name(uri: str) -> str:
    """Return the name of the file at an address, as a local name."""
    names = parse_uri(uri)
    name = names[-1].replace("/", "_").replace("\\", "_") if names else ""
    if name in {"", ".", ".."}:
        raise InvalidArgumentError("FILE", f"{uri} has no name that a file can have; give one")
    return name


def _read_parts(client: "Client", uri: str, offset: int) -> Iterator[str]:
    """Read a file of any length in parts."""
    parts: Iterator[str] = lazy.load("holdfast.exchange.file_parts").read_parts(client, uri, offset=offset)
    return parts


def _print_if_more(entries: FileList, offset: int) -> None:
    if entries.has_more:
        output.print_notice(f"There are more entries; continue with --offset {offset + len(entries)}.")
