"""Words that the help of several commands shares."""

from typing import Annotated

import typer

from holdfast.cli.completion import session_ids
from holdfast.cli.options import show_help

SessionId = Annotated[
    str, typer.Argument(metavar="SESSION_ID", help="The session.", show_default=False, autocompletion=session_ids)
]
AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT_ID", help="The account.", show_default=False)]
UserId = Annotated[str, typer.Argument(metavar="USER_ID", help="The user of that account.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; only a terminal is asked anyway.")]


def example(*lines: str) -> str:
    """The end of a command's help."""
    return "\n".join(["\b", "Examples:" if len(lines) > 1 else "Example:", *(f"  $ holdfast {line}" for line in lines)])


def group(help: str) -> typer.Typer:
    """A group of commands that shows its help when none of them is named."""
    return typer.Typer(help=help, callback=show_help, invoke_without_command=True, rich_markup_mode=None)
