"""`holdfast admin`: accounts, users, keys and the audit."""

from typing import Annotated, Literal

import typer

from holdfast.cli import arguments, help_texts, options, output
from holdfast.cli.commands.sessions import confirm
from holdfast.cli.output import Column
from holdfast.model.base import WireStruct

app = help_texts.group("Accounts, users, keys and the audit.")
account = help_texts.group("Accounts: tenants, who see nothing of one another.")
user = help_texts.group("The users of an account.")
key = help_texts.group("The keys by which a server knows its users.")
app.add_typer(account, name="account")
app.add_typer(user, name="user")
app.add_typer(key, name="key")

TenantRole = Annotated[
    Literal["user", "admin"],
    typer.Option("--role", metavar="user|admin", help="What they may do: use their sessions, or administer as well."),
]
ExpiresIn = Annotated[
    str | None,
    typer.Option(
        "--expires-in",
        metavar="TIME",
        help="How long the key works, such as 90d, 12h, 30m or 45s; else for ever.",
        show_default=False,
    ),
]

ACCOUNTS = (
    Column("account", lambda row: row.account_id),
    Column("users", lambda row: row.user_count, right=True),
    Column("created", lambda row: row.created_at),
    Column("status", lambda row: row.status),
)
USERS = (
    Column("user", lambda row: row.user_id),
    Column("role", lambda row: row.role),
    Column("keys", lambda row: row.key_count, right=True),
    Column("created", lambda row: row.created_at),
)
KEYS = (
    Column("key id", lambda row: row.key_id),
    Column("created", lambda row: row.created_at),
    Column("expires", lambda row: row.expires_at),
    Column("last used", lambda row: row.last_used_at),
)
AUDIT = (
    Column("time", lambda row: row.at),
    Column("user", lambda row: row.user_id),
    Column("role", lambda row: row.role),
    Column("action", lambda row: row.action),
    Column("resource", lambda row: row.resource, gives_way=True),
)


@account.command(name="create", epilog=help_texts.example("admin account create acme --admin alice"))
def create_account(
    ctx: typer.Context,
    account_id: help_texts.AccountId,
    admin: Annotated[str, typer.Option("--admin", metavar="USER_ID", help="Its first administrator.")] = "admin",
) -> None:
    """Create an account with its first administrator, and print their key."""
    with options.of(ctx).open() as client:
        _with_its_key(ctx, client.admin.create_account(account_id, admin))


@account.command(name="list", epilog=help_texts.example("admin account list"))
def list_accounts(ctx: typer.Context) -> None:
    """List the accounts."""
    with options.of(ctx).open() as client:
        output.rows(ctx, client.admin.list_accounts(), ACCOUNTS)


@account.command(name="delete", epilog=help_texts.example("admin account delete acme"))
def delete_account(ctx: typer.Context, account_id: help_texts.AccountId, yes: help_texts.Yes = False) -> None:
    """Delete an account with everything in it.

    That is its users, keys, sessions, messages and audit.
    """
    with options.of(ctx).open() as client:
        confirm(f"Delete the account {account_id} with all its users, sessions and messages?", yes=yes)
        output.said(ctx, client.admin.delete_account(account_id), f"deleted {account_id}")


@user.command(name="create", epilog=help_texts.example("admin user create acme bob --role admin"))
def create_user(
    ctx: typer.Context,
    account_id: help_texts.AccountId,
    user_id: help_texts.UserId,
    role: TenantRole = "user",
    expires_in: ExpiresIn = None,
) -> None:
    """Create a user, and print their key."""
    seconds = arguments.seconds(expires_in, "--expires-in")
    with options.of(ctx).open() as client:
        _with_its_key(ctx, client.admin.create_user(account_id, user_id, role, expires_in_seconds=seconds))


@user.command(name="list", epilog=help_texts.example("admin user list acme"))
def list_users(ctx: typer.Context, account_id: help_texts.AccountId) -> None:
    """List the users of an account."""
    with options.of(ctx).open() as client:
        output.rows(ctx, client.admin.list_users(account_id), USERS)


@user.command(name="delete", epilog=help_texts.example("admin user delete acme bob"))
def delete_user(
    ctx: typer.Context, account_id: help_texts.AccountId, user_id: help_texts.UserId, yes: help_texts.Yes = False
) -> None:
    """Delete a user and all their keys; their sessions stay."""
    with options.of(ctx).open() as client:
        confirm(f"Delete the user {user_id} of {account_id} and all their keys?", yes=yes)
        output.said(ctx, client.admin.delete_user(account_id, user_id), f"deleted {user_id}")


@user.command(name="set-role", epilog=help_texts.example("admin user set-role acme bob admin"))
def set_role(
    ctx: typer.Context,
    account_id: help_texts.AccountId,
    user_id: help_texts.UserId,
    role: Annotated[
        Literal["user", "admin"],
        typer.Argument(metavar="ROLE", help="The new role: user or admin.", show_default=False),
    ],
) -> None:
    """Change what a user may do."""
    with options.of(ctx).open() as client:
        changed = client.admin.set_role(account_id, user_id, role)
    output.said(ctx, changed, f"{user_id} of {account_id} is now {role}")


@key.command(name="create", epilog=help_texts.example("admin key create acme bob --expires-in 90d"))
def create_key(
    ctx: typer.Context, account_id: help_texts.AccountId, user_id: help_texts.UserId, expires_in: ExpiresIn = None
) -> None:
    """Make one more key for a user, beside those they have."""
    seconds = arguments.seconds(expires_in, "--expires-in")
    with options.of(ctx).open() as client:
        _with_its_key(ctx, client.admin.create_key(account_id, user_id, expires_in_seconds=seconds))


@key.command(name="rotate", epilog=help_texts.example("admin key rotate acme bob"))
def rotate_key(
    ctx: typer.Context, account_id: help_texts.AccountId, user_id: help_texts.UserId, expires_in: ExpiresIn = None
) -> None:
    """Make a new key for a user; all they had before stop working."""
    seconds = arguments.seconds(expires_in, "--expires-in")
    with options.of(ctx).open() as client:
        _with_its_key(ctx, client.admin.rotate_key(account_id, user_id, expires_in_seconds=seconds))


@key.command(name="list", epilog=help_texts.example("admin key list acme bob"))
def list_keys(ctx: typer.Context, account_id: help_texts.AccountId, user_id: help_texts.UserId) -> None:
    """List what is known of a user's keys; the keys themselves are not kept."""
    with options.of(ctx).open() as client:
        output.rows(ctx, client.admin.list_keys(account_id, user_id), KEYS)


@key.command(name="revoke", epilog=help_texts.example("admin key revoke acme bob 0123456789abcdef"))
def revoke_key(
    ctx: typer.Context,
    account_id: help_texts.AccountId,
    user_id: help_texts.UserId,
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="The key, as listed.", show_default=False)],
) -> None:
    """Let a key stop working."""
    with options.of(ctx).open() as client:
        output.said(ctx, client.admin.revoke_key(account_id, user_id, key_id), f"revoked {key_id}")


@app.command(epilog=help_texts.example("admin audit --limit 20", "--account acme admin audit"))
def audit(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="How many records to show.")] = 100,
    cursor: Annotated[
        str | None,
        typer.Option("--cursor", metavar="ID", help="Go on behind the record with this id.", show_default=False),
    ] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="What operators did to accounts as a whole instead.", show_default=False)
    ] = False,
) -> None:
    """Show who did what in the account you act in, newest first."""
    with options.of(ctx).open() as client:
        listed = client.admin.list_operator_audit if operator else client.admin.list_audit
        page = listed(limit=limit, cursor=cursor)
    output.rows(ctx, page.records, AUDIT, page)
    if page.next_cursor:
        output.note(f"There are more: --cursor {page.next_cursor} goes on.")


def _with_its_key(ctx: typer.Context, created: WireStruct) -> None:
    output.details(ctx, created)
    if options.of(ctx).for_people:
        output.note("Keep the key: it is shown only now, and nobody can show it again.")
