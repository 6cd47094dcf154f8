"""The command line program `holdfast`. Its commands use the client; there is a file per group of commands."""

import logging
from collections.abc import Sequence
from typing import Any

import typer

from holdfast.cli import errors, options, output
from holdfast.cli.commands import (
    admin,
    audit,
    backups,
    commits,
    evaluation,
    exchange,
    messages,
    reembed,
    resummarise,
    search,
    sessions,
    sharing,
    system,
    tasks,
    worker,
)
from holdfast.cli.commands.tree import file_changes, files, patterns, resources, skills, watches
from holdfast.config import limit_computing_threads

EXIT_OUTPUT_CLOSED = 141
"""The exit code that shells report for a program whose output was closed, as in `| head`."""
EXIT_INTERRUPTED = 130

EPILOG = "\n".join(
    [
        "These options may also be given after the command's name.",
        "",
        "\b",
        "Exit codes:",
        *(f"  {code:<4} {meaning}" for code, meaning in errors.EXIT_CODES.items()),
    ]
)


app = typer.Typer(
    help="Holdfast, the durable session layer for AI agents.",
    epilog=EPILOG,
    callback=options.set_options,
    invoke_without_command=True,
    rich_markup_mode=None,  # plain help works on any terminal and is the same in a pipe
)
sessions.app.add_typer(messages.app)
sessions.app.add_typer(commits.app)
sessions.app.add_typer(exchange.session)
app.add_typer(sessions.app, name="session")
app.add_typer(sharing.app, name="share")
app.add_typer(skills.app, name="skills")
tasks.app.add_typer(watches.app, name="watch")
app.add_typer(tasks.app, name="task")
app.add_typer(resummarise.app)
app.add_typer(reembed.app)
app.add_typer(search.app)
app.add_typer(files.app)
app.add_typer(file_changes.app)
app.add_typer(patterns.app)
app.add_typer(patterns.tags, name="tags")
app.add_typer(resources.app)
app.add_typer(exchange.app)
app.add_typer(exchange.pack, name="pack")
app.add_typer(evaluation.app, name="eval")
app.add_typer(backups.app)
app.add_typer(admin.app, name="admin")
app.add_typer(audit.app, name="audit")
app.add_typer(system.app)
app.add_typer(worker.app)


def program() -> Any:
    """Build the command tree."""
    root = typer.main.get_command(app)
    options.add_to_commands(root)
    return root


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process, and return the exit code."""
    if args is None:
        limit_computing_threads()
    shared = options.SharedOptions()
    for name in ("psycopg", "holdfast.worker"):  # they log each attempt; the final error or the task is enough here
        logging.getLogger(name).addHandler(logging.NullHandler())
    try:
        exit_code = program().main(args, prog_name="holdfast", standalone_mode=False, obj=shared)
        output.flush()
    except output.OutputClosed:
        return EXIT_OUTPUT_CLOSED
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except Exception as error:
        if shared.traceback:
            raise
        sentence, code = errors.describe_error(error)
        output.print_error(sentence)
        return code
    return exit_code if isinstance(exit_code, int) else 0
