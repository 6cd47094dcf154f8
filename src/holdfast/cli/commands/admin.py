"""`holdfast admin`: accounts, users and keys."""

from typing import Annotated

import typer

from holdfast.cli import arguments, help_texts, options, output
from holdfast.cli.commands.sessions import confirm
from holdfast.cli.output import Column
from holdfast.model.base import WireStruct
from holdfast.model.identity import TenantRole

app = help_texts.group("Manage accounts, users and keys.")
account = help_texts.group("Manage accounts (tenants). Accounts are isolated from each other.")
user = help_texts.group("Manage the users of an account.")
key = help_texts.group("Manage the API keys of users.")
app.add_typer(account, name="account")
app.add_typer(user, name="user")
app.add_typer(key, name="key")

RoleOption = Annotated[
    TenantRole,
    typer.Option(
        "--role",
        metavar="user|auditor|admin",
        help="The user's role. An admin may also manage the account's users and keys. An auditor may only read the"
        " audit records.",
    ),
]
ExpiresIn = Annotated[
    str | None,
    typer.Option(
        "--expires-in",
        metavar="DURATION",
        help="How long the key is valid, such as 90d, 12h, 30m or 45s. By default it does not expire.",
        show_default=False,
    ),
]

ACCOUNTS = (
    Column("account", lambda row: row.account_id),
    Column("users", lambda row: row.user_count, align_right=True),
    Column("created", lambda row: row.created_at),
    Column("status", lambda row: row.status),
)
USERS = (
    Column("user", lambda row: row.user_id),
    Column("role", lambda row: row.role),
    Column("keys", lambda row: row.key_count, align_right=True),
    Column("created", lambda row: row.created_at),
    Column("internal id", lambda row: row.internal_id),
)
KEYS = (
    Column("key id", lambda row: row.key_id),
    Column("created", lambda row: row.created_at),
    Column("expires", lambda row: row.expires_at),
    Column("last used", lambda row: row.last_used_at),
)


@account.command(name="create", epilog=help_texts.example("admin account create acme --admin alice"))
def create_account(
    ctx: typer.Context,
    account_id: help_texts.AccountId,
    admin: Annotated[
        str, typer.Option("--admin", metavar="USER_ID", help="The id of its first administrator.")
    ] = "admin",
) -> None:
    """Create an account with its first administrator, and print the administrator's key."""
    with options.get(ctx).open_client() as client:
        _print_with_key(ctx, client.admin.create_account(account_id, admin))


@account.command(name="list", epilog=help_texts.example("admin account list"))
def list_accounts(ctx: typer.Context) -> None:
    """List all accounts."""
    with options.get(ctx).open_client() as client:
        output.print_rows(ctx, client.admin.list_accounts(), ACCOUNTS)


@account.command(name="delete", epilog=help_texts.example("admin account delete acme"))
def delete_account(ctx: typer.Context, account_id: help_texts.AccountId, yes: help_texts.Yes = False) -> None:
    """Delete an account and all its data.

    This includes its users, keys, sessions, messages and audit records.
    """
    with options.get(ctx).open_client() as client:
        confirm(f"Delete the account {account_id} with all its users, sessions and messages?", yes=yes)
        output.print_result(ctx, client.admin.delete_account(account_id), f"deleted {account_id}")


@user.command(
    name="create",
    epilog=help_texts.example(
        "admin user create acme bob --role admin", "admin user create acme robert --internal-id bob"
    ),
)
def create_user(
    ctx: typer.Context,
    account_id: help_texts.AccountId,
    user_id: help_texts.UserId,
    role: RoleOption = "user",
    expires_in: ExpiresIn = None,
    internal_id: Annotated[
        str | None,
        typer.Option(
            "--internal-id",
            metavar="ID",
            help="The internal id of a deleted user. The new user takes over the sessions of that user.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Create a user, and print the user's key."""
    seconds = arguments.parse_seconds(expires_in, "--expires-in")
    with options.get(ctx).open_client() as client:
        created = client.admin.create_user(
            account_id, user_id, role, expires_in_seconds=seconds, internal_id=internal_id
        )
    _print_with_key(ctx, created)


@user.command(name="list", epilog=help_texts.example("admin user list acme"))
def list_users(ctx: typer.Context, account_id: help_texts.AccountId) -> None:
    """List the users of an account."""
    with options.get(ctx).open_client() as client:
        output.print_rows(ctx, client.admin.list_users(account_id), USERS)


@user.command(name="delete", epilog=help_texts.example("admin user delete acme bob"))
def delete_user(
    ctx: typer.Context, account_id: help_texts.AccountId, user_id: help_texts.UserId, yes: help_texts.Yes = False
) -> None:
    """Delete a user and all the user's keys.

    The user's sessions are kept. A new user with the same id cannot open them, unless it is created with
    `--internal-id` and the internal id that is printed here.
    """
    with options.get(ctx).open_client() as client:
        confirm(f"Delete the user {user_id} of {account_id} and all the user's keys?", yes=yes)
        deleted = client.admin.delete_user(account_id, user_id)
    output.print_result(ctx, deleted, f"deleted {user_id}; the internal id was {deleted.internal_id}")


@user.command(name="set-role", epilog=help_texts.example("admin user set-role acme bob admin"))
def set_role(
    ctx: typer.Context,
    account_id: help_texts.AccountId,
    user_id: help_texts.UserId,
    role: Annotated[
        TenantRole,
        typer.Argument(metavar="ROLE", help="The new role: user, auditor or admin.", show_default=False),
    ],
) -> None:
    """Change the role of a user."""
    with options.get(ctx).open_client() as client:
        changed = client.admin.set_role(account_id, user_id, role)
    output.print_result(ctx, changed, f"{user_id} of {account_id} is now {role}")


@key.command(name="create", epilog=help_texts.example("admin key create acme bob --expires-in 90d"))
def create_key(
    ctx: typer.Context, account_id: help_texts.AccountId, user_id: help_texts.UserId, expires_in: ExpiresIn = None
) -> None:
    """Create an additional key for a user."""
    seconds = arguments.parse_seconds(expires_in, "--expires-in")
    with options.get(ctx).open_client() as client:
        _print_with_key(ctx, client.admin.create_key(account_id, user_id, expires_in_seconds=seconds))


@key.command(name="rotate", epilog=help_texts.example("admin key rotate acme bob"))
def rotate_key(
    ctx: typer.Context, account_id: help_texts.AccountId, user_id: help_texts.UserId, expires_in: ExpiresIn = None
) -> None:
    """Create a new key for a user, and revoke all the user's other keys."""
    seconds = arguments.parse_seconds(expires_in, "--expires-in")
    with options.get(ctx).open_client() as client:
        _print_with_key(ctx, client.admin.rotate_key(account_id, user_id, expires_in_seconds=seconds))


@key.command(name="list", epilog=help_texts.example("admin key list acme bob"))
def list_keys(ctx: typer.Context, account_id: help_texts.AccountId, user_id: help_texts.UserId) -> None:
    """List the keys of a user.

    The keys themselves are not stored and cannot be shown again.
    """
    with options.get(ctx).open_client() as client:
        output.print_rows(ctx, client.admin.list_keys(account_id, user_id), KEYS)


@key.command(name="revoke", epilog=help_texts.example("admin key revoke acme bob 0123456789abcdef"))
def revoke_key(
    ctx: typer.Context,
    account_id: help_texts.AccountId,
    user_id: help_texts.UserId,
    key_id: Annotated[
        str, typer.Argument(metavar="KEY_ID", help="The id of the key, from `admin key list`.", show_default=False)
    ],
) -> None:
    """Revoke a key."""
    with options.get(ctx).open_client() as client:
        output.print_result(ctx, client.admin.revoke_key(account_id, user_id, key_id), f"revoked {key_id}")


def _print_with_key(ctx: typer.Context, created: WireStruct) -> None:
    output.print_details(ctx, created)
    if options.get(ctx).is_table:
        output.print_notice("Save the key now: it cannot be shown again.")
