"""`holdfast task`: work that goes on in the background."""

import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from holdfast.cli import help_texts, options, output
from holdfast.cli.output import Column
from holdfast.cli.progress import bar
from holdfast.model.tasks import Task

if TYPE_CHECKING:
    from holdfast import Client

app = help_texts.group("Work that goes on in the background.")

ENDED = {"completed", "failed", "cancelled"}
FIRST_POLL_SECONDS = 0.02
MAX_POLL_SECONDS = 0.5
SECONDS = ("created_at", "updated_at")
"""What a table has as times."""
COLUMNS = (
    Column("task", lambda row: row.task_id),
    Column("status", lambda row: row.status),
    Column("step", lambda row: f"{row.progress.done}/{row.progress.total}", right=True),
    Column("session", lambda row: row.resource_id, gives_way=True),
    Column("stage", lambda row: row.error or row.stage or "", gives_way=True),
)

TaskId = Annotated[str, typer.Argument(metavar="TASK_ID", help="The task.", show_default=False)]


@app.command(
    name="list", epilog=help_texts.example("task list --status failed", "task list --resource chat_001 -o jsonl")
)
def list_(
    ctx: typer.Context,
    task_type: Annotated[
        Literal["session_commit"] | None,
        typer.Option("--type", metavar="session_commit", help="Only those of this kind.", show_default=False),
    ] = None,
    status: Annotated[
        Literal["pending", "running", "completed", "failed", "cancelled"] | None,
        typer.Option(
            "--status",
            metavar="pending|running|completed|failed|cancelled",
            help="Only those in this state.",
            show_default=False,
        ),
    ] = None,
    resource: Annotated[
        str | None,
        typer.Option("--resource", metavar="SESSION_ID", help="Only those of this session.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="How many to list.")] = 50,
) -> None:
    """List tasks, newest first.

    Those that failed wait for somebody: retry or cancel them.
    """
    with options.of(ctx).open() as client:
        found = client.list_tasks(task_type=task_type, status=status, resource_id=resource, limit=limit)
    output.rows(ctx, found, COLUMNS)


@app.command(epilog=help_texts.example("task status task_01", "task status task_01 -o json"))
def status(ctx: typer.Context, task_id: TaskId) -> None:
    """Show what is known of a task."""
    with options.of(ctx).open() as client:
        output.details(ctx, client.get_task(task_id), apart=SECONDS)


@app.command(epilog=help_texts.example("task watch task_01"))
def watch(ctx: typer.Context, task_id: TaskId) -> None:
    """Wait for a task to end, and show how far it is.

    The exit code is 1 if it fails or is cancelled.
    """
    with options.of(ctx).open(works=True) as client:
        show_end(ctx, watched(client, task_id))


@app.command(epilog=help_texts.example("task retry task_01"))
def retry(ctx: typer.Context, task_id: TaskId) -> None:
    """Begin a failed or cancelled task again.

    What it had finished is not done again.
    """
    with options.of(ctx).open(works=True) as client:
        output.said(ctx, client.retry_task(task_id), f"{task_id} begins again")


@app.command(epilog=help_texts.example("task cancel task_01"))
def cancel(ctx: typer.Context, task_id: TaskId) -> None:
    """End a task that is not done.

    The messages of its archive stay in the context.
    """
    with options.of(ctx).open() as client:
        output.said(ctx, client.cancel_task(task_id), f"cancelled {task_id}")


def watched(client: "Client", task_id: str) -> Task:
    """The task once it has ended; meanwhile a bar shows how far it is."""
    try:
        return _watched(client, task_id)
    except KeyboardInterrupt:
        typer.echo(f"{task_id} goes on; `holdfast task watch {task_id}` comes back to it", err=True)
        raise


def _watched(client: "Client", task_id: str) -> Task:
    glance = FIRST_POLL_SECONDS
    with bar(task_id) as progress:
        while True:
            task = client.get_task(task_id)
            progress(task.progress.done, task.progress.total, _at(task))
            if task.status in ENDED:
                return task
            time.sleep(glance)
            glance = min(glance * 1.5, MAX_POLL_SECONDS)


def show_end(ctx: typer.Context, task: Task) -> None:
    output.details(ctx, task, apart=SECONDS)
    if task.status != "completed":
        raise typer.Exit(1)


def _at(task: Task) -> str:
    if task.next_attempt_at is not None:
        return output.one_line(f"next attempt at {output.shown(task.next_attempt_at)}: {task.error}")
    return task.stage or task.status
