"""`holdfast resummarise`: regenerated summaries."""

from typing import Annotated

import typer

from holdfast.cli import help_texts, options, output
from holdfast.cli.commands import tasks

app = typer.Typer()


@app.command(epilog=help_texts.example("resummarise chat_001", "resummarise --all"))
def resummarise(
    ctx: typer.Context,
    session_id: Annotated[
        str | None, typer.Argument(metavar="[SESSION_ID]", help="The id of the session.", show_default=False)
    ] = None,
    all_sessions: Annotated[bool, typer.Option("--all", help="Regenerate the summaries of all your sessions.")] = False,
    owner: help_texts.Owner = None,
) -> None:
    """Regenerate the summaries of finished archives, with the current summariser or model.

    The old summaries of a session are used until all of its new ones are complete. The exit code is 1 if a task fails.
    """
    if (session_id is None) != all_sessions:
        raise typer.BadParameter("give the id of a session, or --all", param_hint="SESSION_ID")
    if all_sessions and owner is not None:
        raise typer.BadParameter("use only one of them: --all means your own sessions", param_hint="--all and --owner")
    with options.get(ctx).open_client(run_tasks=True) as client:
        started = client.resummarise(session_id, owner=owner)
        task_ids = [each.task_id for each in started if each.task_id is not None]
        finished = [tasks.wait_for_task(client, task_id) for task_id in task_ids]
    output.print_rows(ctx, finished, tasks.COLUMNS)
    if not finished:
        output.print_notice("There is no finished archive.")
    if any(task.status != "completed" for task in finished):
        raise typer.Exit(1)
