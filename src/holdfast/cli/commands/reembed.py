"""`holdfast reembed`: vectors of another embedder."""

import typer

from holdfast.cli import help_texts, options
from holdfast.cli.commands import tasks

app = typer.Typer()


@app.command(epilog=help_texts.example("reembed", "--account acme reembed"))
def reembed(ctx: typer.Context) -> None:
    """Embed all documents of the account with the configured embedder.

    Searches use the old vectors until all documents have new ones. If it is interrupted, it continues where it was. The
    exit code is 1 if the task fails.
    """
    with options.get(ctx).open_client(run_tasks=True) as client:
        started = client.admin.reembed()
        task = tasks.wait_for_task(client, started.task_id)
    tasks.print_finished_task(ctx, task)
