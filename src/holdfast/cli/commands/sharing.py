"""`holdfast share`: collaborators, share links, and the transfer to another owner."""

from typing import Annotated, get_args

import msgspec
import typer

from holdfast.cli import arguments, help_texts, options, output
from holdfast.cli.commands.sessions import confirm
from holdfast.cli.output import Column
from holdfast.model.access import Right

app = help_texts.group("Share sessions with other users, or with everybody who has a link.")
link = help_texts.group("Manage share links. A link opens one session to everybody who has its token.")
app.add_typer(link, name="link")

COLLABORATORS = (
    Column("user", lambda row: row.user_id),
    Column("rights", lambda row: ", ".join(row.rights)),
    Column("agent", lambda row: row.agent_id or "any", shrinks=True),
    Column("since", lambda row: row.created_at),
    Column("expires", lambda row: row.expires_at),
)
LINKS = (
    Column("link id", lambda row: row.id),
    Column("rights", lambda row: ", ".join(row.rights), shrinks=True),
    Column("uses", lambda row: row.use_count, align_right=True),
    Column("expires", lambda row: row.expires_at),
    Column("last used", lambda row: row.last_used_at),
)
ALL_RIGHTS: list[Right] = list(get_args(Right))
NO_RIGHTS = ["none"]

UserId = Annotated[
    str, typer.Argument(metavar="USER_ID", help="The id of a user of the same account.", show_default=False)
]
Rights = Annotated[
    list[str] | None,
    typer.Option(
        "--right",
        metavar="read|write|invoke",
        autocompletion=lambda: ALL_RIGHTS,
        help="A right to give; may be given several times. read: see and fork the session. write: add messages, commit,"
        " and change the title and metadata. invoke: with write, also add tool calls and results. Default: read.",
        show_default=False,
    ),
]
ExpiresIn = Annotated[
    str | None,
    typer.Option(
        "--expires-in",
        metavar="DURATION",
        help="How long the access lasts, such as 7d, 12h, 30m or 45s. By default it does not expire.",
        show_default=False,
    ),
]


@app.command(
    epilog=help_texts.example(
        "share add chat_001 bob --right read --right write",
        "share add chat_001 bob --only-agent reviewer --expires-in 7d",
    )
)
def add(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    user_id: UserId,
    rights: Rights = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--only-agent",
            metavar="NAME",
            help="Limit the rights to calls of the user with this agent.",
            show_default=False,
        ),
    ] = None,
    expires_in: ExpiresIn = None,
    owner: help_texts.Owner = None,
) -> None:
    """Share a session with a user, or replace the user's rights.

    The user finds it with `session list`, and names its owner with `--owner`.
    """
    seconds = arguments.parse_seconds(expires_in, "--expires-in")
    given = _parse_rights(rights, ["read"], "--right")
    with options.get(ctx).open_client() as client:
        shared = client.share_session(session_id, user_id, given, agent_id=agent, expires_in=seconds, owner=owner)
    output.print_result(ctx, shared, f"{session_id} is shared with {user_id}: {', '.join(shared.rights)}")


@app.command(name="list", epilog=help_texts.example("share list chat_001", "share list chat_001 --owner alice"))
def list_(ctx: typer.Context, session_id: help_texts.SessionId, owner: help_texts.Owner = None) -> None:
    """List the users that a session is shared with, and their rights."""
    with options.get(ctx).open_client() as client:
        collaborators = client.session(session_id, owner=owner).collaborators
    output.print_rows(ctx, collaborators, COLLABORATORS)


@app.command(epilog=help_texts.example("share remove chat_001 bob"))
def remove(
    ctx: typer.Context, session_id: help_texts.SessionId, user_id: UserId, owner: help_texts.Owner = None
) -> None:
    """Stop sharing a session with a user.

    The user's messages stay in the session.
    """
    with options.get(ctx).open_client() as client:
        removed = client.unshare_session(session_id, user_id, owner=owner)
    output.print_result(ctx, removed, f"{session_id} is no longer shared with {user_id}")


@app.command(epilog=help_texts.example("share leave chat_001 --owner alice"))
def leave(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    owner: Annotated[
        str,
        typer.Option("--owner", metavar="USER_ID", help="The owner, as `session list` shows it.", show_default=False),
    ],
) -> None:
    """Give up your access to a session that another user shares.

    Only the owner can give it back.
    """
    with options.get(ctx).open_client() as client:
        left = client.session(session_id, owner=owner).leave()
    output.print_result(ctx, left, f"left {session_id} of {owner}")


@app.command(epilog=help_texts.example("share transfer chat_001 bob", "share transfer chat_001 bob --keep read --yes"))
def transfer(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    user_id: UserId,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="read|write|invoke|none",
            autocompletion=lambda: ALL_RIGHTS + NO_RIGHTS,
            help="A right that you keep; may be given several times. Default: all three. none: keep no access.",
            show_default=False,
        ),
    ] = None,
    owner: help_texts.Owner = None,
    yes: help_texts.Yes = False,
) -> None:
    """Make another user the owner of a session.

    The session then has the address of its new owner. Its collaborators and links keep their access.
    """
    kept = [] if keep == NO_RIGHTS else _parse_rights(keep, ALL_RIGHTS, "--keep")
    with options.get(ctx).open_client() as client:
        confirm(f"Make {user_id} the owner of the session {session_id}?", yes=yes)
        moved = client.transfer_session(session_id, user_id, keep_rights=kept, owner=owner)
    output.print_result(ctx, moved, f"{user_id} owns {session_id}, now {moved.uri}")


@link.command(
    name="create",
    epilog=help_texts.example(
        "share link create chat_001 --expires-in 7d", "share link create chat_001 --right read --right write"
    ),
)
def create_link(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    rights: Rights = None,
    expires_in: ExpiresIn = None,
    owner: help_texts.Owner = None,
) -> None:
    """Create a share link, and print its token.

    The token works in place of an API key, with a server, for this session alone.
    """
    seconds = arguments.parse_seconds(expires_in, "--expires-in")
    given = _parse_rights(rights, ["read"], "--right")
    with options.get(ctx).open_client() as client:
        created = client.create_share_link(session_id, given, expires_in=seconds, owner=owner)
    output.print_details(ctx, created)
    if options.get(ctx).is_table:
        output.print_notice("Save the token now: it cannot be shown again.")


@link.command(name="list", epilog=help_texts.example("share link list chat_001"))
def list_links(ctx: typer.Context, session_id: help_texts.SessionId, owner: help_texts.Owner = None) -> None:
    """List the share links of a session, with the number of their uses.

    The tokens are not stored and cannot be shown again.
    """
    with options.get(ctx).open_client() as client:
        output.print_rows(ctx, client.session(session_id, owner=owner).links, LINKS)


@link.command(name="revoke", epilog=help_texts.example("share link revoke chat_001 0123456789abcdef"))
def revoke_link(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    link_id: Annotated[
        str, typer.Argument(metavar="LINK_ID", help="The id of the link, from `share link list`.", show_default=False)
    ],
    owner: help_texts.Owner = None,
) -> None:
    """Revoke a share link, so that it opens nothing any more."""
    with options.get(ctx).open_client() as client:
        output.print_result(ctx, client.revoke_share_link(session_id, link_id, owner=owner), f"revoked {link_id}")


def _parse_rights(values: list[str] | None, default: list[Right], hint: str) -> list[Right]:
    try:
        return msgspec.convert(values, list[Right]) if values else default
    except msgspec.ValidationError:
        unknown = [value for value in values or () if value not in ALL_RIGHTS]
        raise typer.BadParameter(f"{unknown[0]!r} is not one of {', '.join(ALL_RIGHTS)}", param_hint=hint) from None
