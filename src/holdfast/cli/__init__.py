"""The command line, `holdfast`: a file per noun, all of it through the client."""

import logging
from collections.abc import Sequence
from typing import Any

import typer

from holdfast.cli import errors, options, output
from holdfast.cli.commands import admin, commits, exchange, files, messages, sessions, system, tasks, worker

UNREAD = 141
"""What a shell reports for a program whose reader has gone, as in `| head`."""
INTERRUPTED = 130

EPILOG = "\n".join(
    [
        "Every option may also stand behind the command's name.",
        "",
        "\b",
        "Exit codes:",
        *(f"  {code:<4} {meaning}" for code, meaning in errors.EXIT_CODES.items()),
    ]
)


app = typer.Typer(
    help="The durable session layer for AI agents, on the command line.",
    epilog=EPILOG,
    callback=options.choose,
    invoke_without_command=True,
    rich_markup_mode=None,  # plain help fits any terminal and reads the same in a pipe
)
sessions.app.add_typer(messages.app)
sessions.app.add_typer(commits.app)
sessions.app.add_typer(exchange.session)
app.add_typer(sessions.app, name="session")
app.add_typer(tasks.app, name="task")
app.add_typer(files.app)
app.add_typer(exchange.app)
app.add_typer(admin.app, name="admin")
app.add_typer(system.app)
app.add_typer(worker.app)


def program() -> Any:
    """The tree of commands."""
    root = typer.main.get_command(app)
    options.offer_everywhere(root)
    return root


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line, by default the one the process was started with; the result is the exit code."""
    chosen = options.Choices()
    for name in ("psycopg", "holdfast.worker"):  # they tell of each attempt; an error or a task tells enough
        logging.getLogger(name).addHandler(logging.NullHandler())
    try:
        outcome = program().main(args, prog_name="holdfast", standalone_mode=False, obj=chosen)
        output.finish()
    except output.Unread:
        return UNREAD
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        if chosen.traceback:
            raise
        sentence, code = errors.told(error)
        output.error(sentence)
        return code
    return outcome if isinstance(outcome, int) else 0
