"""`holdfast task`: background tasks."""

import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from holdfast.cli import help_texts, options, output
from holdfast.cli.output import Column
from holdfast.cli.progress import progress_bar
from holdfast.model.tasks import Task

if TYPE_CHECKING:
    from holdfast import Client

app = help_texts.group("Manage background tasks.")

FINISHED_STATUSES = {"completed", "failed", "cancelled"}
FIRST_POLL_SECONDS = 0.02
MAX_POLL_SECONDS = 0.5
UNIX_TIME_FIELDS = ("created_at", "updated_at")
"""Excluded from tables, which have the same times in `created_at_iso` and `updated_at_iso`."""
# "step" counts finished steps of all steps, such as 2/3. "stage" is the name of the current step, or the error.
COLUMNS = (
    Column("task", lambda row: row.task_id),
    Column("type", lambda row: row.task_type),
    Column("status", lambda row: row.status),
    Column("step", lambda row: f"{row.progress.done}/{row.progress.total}", align_right=True),
    Column("subject", lambda row: row.resource_id, shrinks=True),
    Column("stage", lambda row: row.error or row.stage or "", shrinks=True),
)

TaskId = Annotated[str, typer.Argument(metavar="TASK_ID", help="The id of the task.", show_default=False)]


@app.command(
    name="list", epilog=help_texts.example("task list --status failed", "task list --resource chat_001 -o jsonl")
)
def list_(
    ctx: typer.Context,
    task_type: Annotated[
        str | None,
        typer.Option(
            "--type", metavar="TYPE", help="Only tasks of this type, such as session_commit.", show_default=False
        ),
    ] = None,
    status: Annotated[
        Literal["pending", "running", "completed", "failed", "cancelled"] | None,
        typer.Option(
            "--status",
            metavar="pending|running|completed|failed|cancelled",
            help="Only tasks with this status.",
            show_default=False,
        ),
    ] = None,
    resource: Annotated[
        str | None,
        typer.Option(
            "--resource",
            metavar="SUBJECT",
            help="Only tasks of this session or address.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="The maximum number of tasks.")] = 50,
) -> None:
    """List tasks, newest first.

    A failed task stays failed until it is retried or cancelled.
    """
    with options.get(ctx).open_client() as client:
        tasks = client.list_tasks(task_type=task_type, status=status, resource_id=resource, limit=limit)
    output.print_rows(ctx, tasks, COLUMNS, empty="There are no such tasks.")


@app.command(epilog=help_texts.example("task status task_01", "task status task_01 -o json"))
def status(ctx: typer.Context, task_id: TaskId) -> None:
    """Show the status and progress of a task."""
    with options.get(ctx).open_client() as client:
        output.print_details(ctx, client.get_task(task_id), exclude=UNIX_TIME_FIELDS)


@app.command(epilog=help_texts.example("task retry task_01"))
def retry(ctx: typer.Context, task_id: TaskId) -> None:
    """Restart a failed or cancelled task.

    Finished steps are not repeated.
    """
    with options.get(ctx).open_client(run_tasks=True) as client:
        output.print_result(ctx, client.retry_task(task_id), f"restarted {task_id}")


@app.command(epilog=help_texts.example("task cancel task_01"))
def cancel(ctx: typer.Context, task_id: TaskId) -> None:
    """Cancel an unfinished task.

    After a cancelled commit, the messages of its archive stay in the context.
    """
    with options.get(ctx).open_client() as client:
        output.print_result(ctx, client.cancel_task(task_id), f"cancelled {task_id}")


def wait_for_task(client: "Client", task_id: str) -> Task:
    """Wait until a task is finished, with a progress bar, and return it."""
    try:
        return _poll_task(client, task_id)
    except KeyboardInterrupt:
        typer.echo(f"{task_id} continues; `holdfast task watch {task_id}` waits for it again", err=True)
        raise


def _poll_task(client: "Client", task_id: str) -> Task:
    poll_seconds = FIRST_POLL_SECONDS
    with progress_bar(task_id) as progress:
        while True:
            task = client.get_task(task_id)
            progress(task.progress.done, task.progress.total, _describe_stage(task))
            if task.status in FINISHED_STATUSES:
                return task
            time.sleep(poll_seconds)
            poll_seconds = min(poll_seconds * 1.5, MAX_POLL_SECONDS)


def print_finished_task(ctx: typer.Context, task: Task) -> None:
    """Print a task, and exit with code 1 unless it is completed."""
    output.print_details(ctx, task, exclude=UNIX_TIME_FIELDS)
    if task.status != "completed":
        raise typer.Exit(1)


def _describe_stage(task: Task) -> str:
    if task.next_attempt_at is not None:
        return output.one_line(f"next attempt at {output.format_value(task.next_attempt_at)}: {task.error}")
    return task.stage or task.status
