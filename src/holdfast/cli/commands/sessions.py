"""`holdfast session`: sessions as such. Their messages are in `messages`."""

import sys
from typing import Annotated, Literal

import typer

from holdfast.cli import arguments, help_texts, options, output
from holdfast.cli.output import Column
from holdfast.model.sessions import SessionRow

app = help_texts.group("Sessions and their messages.")

PAGE = 1_000
COLUMNS = (
    Column("session", lambda row: row.session_id),
    Column("messages", lambda row: row.total_message_count, right=True),
    Column("changed", lambda row: row.mod_time),
    Column("state", lambda row: row.state),
    Column("title", lambda row: row.title, gives_way=True),
)

Title = Annotated[str, typer.Option("--title", metavar="TEXT", help="What it is about.", show_default=False)]


@app.command(epilog=help_texts.example("session new", "session new --id chat_001 --title 'Login fails'"))
def new(
    ctx: typer.Context,
    session_id: Annotated[
        str | None,
        typer.Option("--session-id", "--id", metavar="ID", help="Its id; else one is made.", show_default=False),
    ] = None,
    title: Title = "",
    metadata: Annotated[
        str | None,
        typer.Option(
            "--metadata", metavar="JSON", help="A JSON object to keep with it; - reads it.", show_default=False
        ),
    ] = None,
) -> None:
    """Begin a session."""
    kept = None if metadata is None else arguments.json(metadata, "--metadata", dict, "a JSON object")
    with options.of(ctx).open() as client:
        output.details(ctx, client.create_session(session_id, title=title, metadata=kept))


@app.command(name="list", epilog=help_texts.example("session list --q login", "session list --all -o jsonl"))
def list_(
    ctx: typer.Context,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="How many to list; else 100.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List them all, however many there are.")] = False,
    q: Annotated[
        str | None,
        typer.Option("--q", metavar="TEXT", help="Only those with this in their id or title.", show_default=False),
    ] = None,
    state: Annotated[
        Literal["active", "archived"] | None,
        typer.Option("--state", metavar="active|archived", help="Only those in this state.", show_default=False),
    ] = None,
) -> None:
    """List sessions, newest first."""
    if every and limit is not None:
        raise typer.BadParameter("give one of them", param_hint="--limit and --all")
    found: list[SessionRow] = []
    with options.of(ctx).open() as client:
        page = client.list_sessions(limit=PAGE if every else 100 if limit is None else limit, q=q, state=state)
        found += page
        while every and page.next_cursor:
            page = client.list_sessions(limit=PAGE, q=q, state=state, cursor=page.next_cursor)
            found += page
    output.rows(ctx, found, COLUMNS)
    if page.next_cursor:
        output.note("There are more: --limit and --all say how many to list.")


@app.command(epilog=help_texts.example("session get chat_001", "session get chat_001 -o json"))
def get(ctx: typer.Context, session_id: help_texts.SessionId) -> None:
    """Show what is known of a session."""
    with options.of(ctx).open() as client:
        output.details(ctx, client.get_session(session_id))


@app.command(epilog=help_texts.example("session fork chat_001 --at 12 --new-id what-if"))
def fork(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="SEQ|MESSAGE_ID", help="The last message to share; else the last one.", show_default=False
        ),
    ] = None,
    new_id: Annotated[
        str | None,
        typer.Option("--new-id", metavar="ID", help="The new session's id; else one is made.", show_default=False),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option("--title", metavar="TEXT", help="What it is about; else as before.", show_default=False),
    ] = None,
) -> None:
    """Begin a session that shares another's past.

    Nothing is copied, whatever its length.
    """
    place = int(at) if at is not None and at.isascii() and at.isdigit() else at
    with options.of(ctx).open() as client:
        output.details(ctx, client.fork_session(session_id, place, new_session_id=new_id, title=title))


@app.command(epilog=help_texts.example("session delete chat_001 --yes"))
def delete(ctx: typer.Context, session_id: help_texts.SessionId, yes: help_texts.Yes = False) -> None:
    """Delete a session with all its messages.

    What a fork shares stays with the fork.
    """
    with options.of(ctx).open() as client:
        confirm(f"Delete the session {session_id} with all its messages?", yes=yes)
        output.said(ctx, client.delete_session(session_id), f"deleted {session_id}")


def confirm(question: str, *, yes: bool) -> None:
    """Ask whoever sits at a terminal; a script has said what it wants."""
    if yes or not sys.stdin.isatty():
        return
    if not typer.confirm(output.one_line(question), err=True):
        output.note("Nothing was changed.")
        raise typer.Exit(1)
