"""Arguments, options and help texts that several commands share."""

from typing import Annotated

import typer

from holdfast.cli.completion import complete_session_id
from holdfast.cli.options import show_help

SessionId = Annotated[
    str,
    typer.Argument(
        metavar="SESSION_ID",
        help="The id of the session.",
        show_default=False,
        autocompletion=complete_session_id,
    ),
]
Owner = Annotated[
    str | None,
    typer.Option(
        "--owner",
        metavar="USER_ID",
        help="The owner of a session that another user shares with you, as `session list` shows it.",
        show_default=False,
    ),
]
AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT_ID", help="The id of the account.", show_default=False)]
UserId = Annotated[str, typer.Argument(metavar="USER_ID", help="The id of the user.", show_default=False)]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask for confirmation. It is asked for only on a terminal.")
]


def example(*lines: str) -> str:
    """The examples at the end of a command's help."""
    return "\n".join(["\b", "Examples:" if len(lines) > 1 else "Example:", *(f"  $ holdfast {line}" for line in lines)])


def group(help: str) -> typer.Typer:
    """A group of commands. Without a command's name it prints its help."""
    return typer.Typer(help=help, callback=show_help, invoke_without_command=True, rich_markup_mode=None)
