"""`holdfast session`: create, list, fork and delete sessions."""

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from holdfast.cli import arguments, help_texts, options, output
from holdfast.cli.output import Column
from holdfast.model.sessions import SessionRow

if TYPE_CHECKING:
    from holdfast import Client

app = help_texts.group("Manage sessions and their messages.")

PAGE_SIZE = 1_000
COLUMNS = (
    Column("session", lambda row: row.session_id),
    Column("messages", lambda row: row.total_message_count, align_right=True),
    Column("changed", lambda row: row.mod_time),
    Column("state", lambda row: row.state),
    Column("title", lambda row: row.title, shrinks=True),
)
SHARED_COLUMNS = (
    *COLUMNS[:-2],
    Column("owner", lambda row: row.owner),
    Column("rights", lambda row: ", ".join(row.rights), shrinks=True),
    Column("state", lambda row: row.state, shrinks=True),
    COLUMNS[-1],
)

Title = Annotated[str, typer.Option("--title", metavar="TEXT", help="The title of the session.", show_default=False)]


@app.command(epilog=help_texts.example("session new", "session new --id chat_001 --title 'Login fails'"))
def new(
    ctx: typer.Context,
    session_id: Annotated[
        str | None,
        typer.Option(
            "--session-id",
            "--id",
            metavar="ID",
            help="The id of the session. By default it is generated.",
            show_default=False,
        ),
    ] = None,
    title: Title = "",
    metadata: Annotated[
        str | None,
        typer.Option(
            "--metadata",
            metavar="JSON",
            help="A JSON object to store with the session; - reads the standard input, @FILE a file.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Create a session."""
    metadata_object = None if metadata is None else arguments.read_json(metadata, "--metadata", dict, "a JSON object")
    with options.get(ctx).open_client() as client:
        output.print_details(ctx, client.create_session(session_id, title=title, metadata=metadata_object))


@app.command(name="list", epilog=help_texts.example("session list --q login", "session list --all -o jsonl"))
def list_(
    ctx: typer.Context,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", help="The maximum number of sessions. Default: 100.", show_default=False),
    ] = None,
    list_all: Annotated[bool, typer.Option("--all", help="List all sessions.")] = False,
    q: Annotated[
        str | None,
        typer.Option(
            "--q", metavar="TEXT", help="Only sessions with this text in the id or title.", show_default=False
        ),
    ] = None,
    state: Annotated[
        Literal["active", "archived"] | None,
        typer.Option("--state", metavar="active|archived", help="Only sessions in this state.", show_default=False),
    ] = None,
    shared: Annotated[
        bool | None,
        typer.Option(
            "--shared/--own", help="Only sessions that others share with you, or only your own.", show_default=False
        ),
    ] = None,
) -> None:
    """List sessions, newest first.

    The list has your own sessions and those that other users share with you.
    """
    if list_all and limit is not None:
        raise typer.BadParameter("use only one of them", param_hint="--limit and --all")
    rows: list[SessionRow] = []
    with options.get(ctx).open_client() as client:
        page_size = PAGE_SIZE if list_all else 100 if limit is None else limit
        page = client.list_sessions(limit=page_size, q=q, state=state, shared=shared)
        rows += page
        while list_all and page.next_cursor:
            page = client.list_sessions(limit=PAGE_SIZE, q=q, state=state, shared=shared, cursor=page.next_cursor)
            rows += page
        has_shared = options.get(ctx).is_table and _has_shared(client, rows, shared=shared)
    output.print_rows(ctx, rows, SHARED_COLUMNS if has_shared else COLUMNS)
    if page.next_cursor:
        output.print_notice("There are more sessions; list more with --limit, or all with --all.")


def _has_shared(client: "Client", rows: list[SessionRow], *, shared: bool | None) -> bool:
    """Whether one of the rows is a session that another user shares.

    The owner of the caller's own sessions is the caller's internal id, which is not always the user id.
    """
    if shared is not None or not rows:
        return bool(shared)
    own = client.list_sessions(limit=1, shared=False)
    return any(row.owner != own[0].owner for row in rows) if own else True


@app.command(epilog=help_texts.example("session get chat_001", "session get plan --owner alice -o json"))
def get(ctx: typer.Context, session_id: help_texts.SessionId, owner: help_texts.Owner = None) -> None:
    """Show the fields and counts of a session."""
    with options.get(ctx).open_client() as client:
        output.print_details(ctx, client.get_session(session_id, owner=owner))


@app.command(epilog=help_texts.example("session fork chat_001 --at 12 --new-id what-if"))
def fork(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="SEQ|MESSAGE_ID",
            help="The last message to share. Default: the last message of the session.",
            show_default=False,
        ),
    ] = None,
    new_id: Annotated[
        str | None,
        typer.Option(
            "--new-id", metavar="ID", help="The id of the new session. By default it is generated.", show_default=False
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(
            "--title", metavar="TEXT", help="The title of the new session. Default: the same title.", show_default=False
        ),
    ] = None,
    owner: help_texts.Owner = None,
) -> None:
    """Create a session that shares the messages of another, up to a point.

    No messages are copied. A fork of a session that another user shares is your own.
    """
    last_shared = int(at) if at is not None and at.isascii() and at.isdigit() else at
    with options.get(ctx).open_client() as client:
        forked = client.fork_session(session_id, last_shared, new_session_id=new_id, title=title, owner=owner)
    output.print_details(ctx, forked)


@app.command(epilog=help_texts.example("session delete chat_001 --yes"))
def delete(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    owner: help_texts.Owner = None,
    yes: help_texts.Yes = False,
) -> None:
    """Delete a session with all its messages.

    Messages that it shares with a fork stay in the fork.
    """
    with options.get(ctx).open_client(run_tasks=True) as client:
        confirm(f"Delete the session {session_id} with all its messages?", yes=yes)
        output.print_result(ctx, client.delete_session(session_id, owner=owner), f"deleted {session_id}")


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation on a terminal. A script is not asked."""
    if yes or not sys.stdin.isatty():
        return
    if not typer.confirm(output.one_line(question), err=True):
        output.print_notice("Nothing was changed.")
        raise typer.Exit(1)
