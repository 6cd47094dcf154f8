"""`holdfast ls`, `tree`, `read`, `abstract` and `overview`: the `viking://` tree."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import help_texts, options, output
from holdfast.cli.output import Column
from holdfast.model.files import FileEntry, FileList

if TYPE_CHECKING:
    from holdfast import Client

app = typer.Typer()

LINES = 1_000

Hidden = Annotated[bool, typer.Option("--all", "-a", help="Show also what begins with a dot.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", help="How many to list.")]
Offset = Annotated[int, typer.Option("--offset", metavar="N", help="How many to leave out before.")]
FolderUri = Annotated[
    str, typer.Argument(metavar="URI", help="A folder, such as viking://session/chat_001.", show_default=False)
]
Summarised = Annotated[
    str, typer.Argument(metavar="URI", help="A session or an archive, such as viking://session/chat_001.")
]


def _name(entry: FileEntry) -> str:
    return f"{entry.rel_path}/" if entry.is_dir else entry.rel_path


def _indented(entry: FileEntry) -> str:
    """In a tree, a name stands below that of its folder."""
    return f"{'│ ' * entry.rel_path.count('/')}{entry.name}{'/' if entry.is_dir else ''}"


LISTED = (
    Column("name", _name),
    Column("size", lambda row: row.size or None, right=True),
    Column("changed", lambda row: row.mod_time),
    Column("abstract", lambda row: row.abstract, gives_way=True),
)
TREE = (Column("name", _indented), *LISTED[1:])


@app.command(epilog=help_texts.example("ls viking://user", "ls viking://session/chat_001 --all --recursive"))
def ls(
    ctx: typer.Context,
    uri: Annotated[str, typer.Argument(metavar="[URI]", help="A folder; else the root.", show_default=False)] = (
        "viking://"
    ),
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="List all that is below it.")] = False,
    hidden: Hidden = False,
    limit: Limit = 1_000,
    offset: Offset = 0,
) -> None:
    """List what is in a folder of the `viking://` tree.

    Sessions are folders there; their files are views of what is stored. A size is shown where it is known without
    reading.
    """
    with options.of(ctx).open() as client:
        found = client.ls(
            uri,
            recursive=recursive,
            output="agent",
            show_all_hidden=hidden,
            node_limit=limit,
            offset=offset,
        )
    output.rows(ctx, found, LISTED)
    _more(found, offset)


@app.command(epilog=help_texts.example("tree viking://session/chat_001", "tree viking:// --level-limit 5 --all"))
def tree(
    ctx: typer.Context,
    uri: FolderUri,
    level_limit: Annotated[
        int, typer.Option("--level-limit", "-L", metavar="N", help="How many levels to go down.")
    ] = 3,
    hidden: Hidden = False,
    limit: Limit = 1_000,
    offset: Offset = 0,
) -> None:
    """Show what is below a folder of the `viking://` tree."""
    with options.of(ctx).open() as client:
        found = client.tree(
            uri, output="agent", show_all_hidden=hidden, level_limit=level_limit, node_limit=limit, offset=offset
        )
    output.rows(ctx, found, TREE)
    _more(found, offset)


@app.command(
    epilog=help_texts.example(
        "read viking://session/chat_001/messages.jsonl", "read viking://session/chat_001/.meta.json --limit 5"
    )
)
def read(
    ctx: typer.Context,
    uri: Annotated[
        str,
        typer.Argument(
            metavar="URI", help="A file, such as viking://session/chat_001/messages.jsonl.", show_default=False
        ),
    ],
    offset: Annotated[int, typer.Option("--offset", metavar="N", help="How many lines to leave out before.")] = 0,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="How many lines; -1 is all of them.")] = -1,
) -> None:
    """Print a file of the `viking://` tree."""
    with options.of(ctx).open() as client:
        if limit >= 0:
            output.text(ctx, client.read(uri, offset, limit), exact=True)
        elif options.of(ctx).for_people:
            for piece in _pieces(client, uri, offset):
                output.text(ctx, piece, exact=True)
        else:
            output.text(ctx, "".join(_pieces(client, uri, offset)))


@app.command(epilog=help_texts.example("abstract viking://session/chat_001"))
def abstract(ctx: typer.Context, uri: Summarised) -> None:
    """Print the one line about a session or an archive."""
    with options.of(ctx).open() as client:
        output.text(ctx, client.abstract(uri))


@app.command(
    epilog=help_texts.example(
        "overview viking://session/chat_001", "overview viking://session/chat_001/history/archive_001"
    )
)
def overview(ctx: typer.Context, uri: Summarised) -> None:
    """Print what an archive is about, or all finished archives of a session."""
    with options.of(ctx).open() as client:
        output.text(ctx, client.overview(uri))


def _pieces(client: "Client", uri: str, offset: int) -> Iterator[str]:
    """A file of any length, so many lines at a time."""
    while True:
        piece = client.read(uri, offset, LINES)
        yield piece
        if piece.count("\n") < LINES:
            return
        offset += LINES


def _more(found: FileList, offset: int) -> None:
    if found.has_more:
        output.note(f"There are more: --offset {offset + len(found)} goes on.")
