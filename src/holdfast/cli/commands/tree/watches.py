"""`holdfast task watch`: waiting for a task, and watches of resources."""

from typing import Annotated, Any

import typer

from holdfast.cli import help_texts, options, output
from holdfast.cli.commands.tasks import TaskId, print_finished_task, wait_for_task
from holdfast.cli.output import Column

COLUMNS = (
    Column("watch", lambda row: row.task_id),
    Column("active", lambda row: row.is_active),
    Column("minutes", lambda row: f"{row.watch_interval:g}", align_right=True),
    Column("next", lambda row: row.next_execution_time),
    Column("resource", lambda row: row.to_uri, shrinks=True),
    Column("source", lambda row: row.path, shrinks=True),
    Column("error", lambda row: row.last_error or "", shrinks=True),
)
WatchArgument = Annotated[
    str,
    typer.Argument(metavar="WATCH", help="The id of the watch, or the address of its resource.", show_default=False),
]


class WatchGroup(typer.core.TyperGroup):
    """A group whose commands are for watches. With the id of a task, it waits for the task."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            return "task", self.commands["task"], args
        return super().resolve_command(ctx, args)


app = typer.Typer(
    help="Wait for a task (`task watch TASK_ID`), or manage the watches of resources.",
    callback=options.show_help,
    invoke_without_command=True,
    rich_markup_mode=None,
    cls=WatchGroup,
)


@app.command(epilog=help_texts.example("task watch task_01", "task watch task task_01"))
def task(ctx: typer.Context, task_id: TaskId) -> None:
    """Wait until a task is finished, and show its progress. The word `task` may be left out.

    The exit code is 1 if it fails or is cancelled.
    """
    with options.get(ctx).open_client(run_tasks=True) as client:
        print_finished_task(ctx, wait_for_task(client, task_id))


@app.command(epilog=help_texts.example("task watch ls --active-only"))
def ls(
    ctx: typer.Context, active_only: Annotated[bool, typer.Option("--active-only", help="No paused watches.")] = False
) -> None:
    """List the watches of resources."""
    with options.get(ctx).open_client() as client:
        found = client.list_watches(active_only=active_only)
    output.print_rows(ctx, found.tasks, COLUMNS, found, empty="There are no watches.")


@app.command(epilog=help_texts.example("task watch show viking://resources/handbook"))
def show(ctx: typer.Context, watch: WatchArgument) -> None:
    """Show a watch, with the error of its last run."""
    with options.get(ctx).open_client() as client:
        output.print_details(ctx, client.get_watch(watch))


@app.command(epilog=help_texts.example("task watch pause viking://resources/handbook"))
def pause(ctx: typer.Context, watch: WatchArgument) -> None:
    """Pause a watch."""
    with options.get(ctx).open_client() as client:
        output.print_result(ctx, client.update_watch(watch, is_active=False), f"paused {watch}")


@app.command(epilog=help_texts.example("task watch resume viking://resources/handbook"))
def resume(ctx: typer.Context, watch: WatchArgument) -> None:
    """Continue a paused watch."""
    with options.get(ctx).open_client() as client:
        output.print_result(ctx, client.update_watch(watch, is_active=True), f"resumed {watch}")


@app.command(epilog=help_texts.example("task watch update viking://resources/handbook --interval 60"))
def update(
    ctx: typer.Context,
    watch: WatchArgument,
    interval: Annotated[
        float | None, typer.Option("--interval", metavar="MINUTES", help="The new interval.", show_default=False)
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why it is watched.", show_default=False)
    ] = None,
    instruction: Annotated[
        str | None, typer.Option("--instruction", metavar="TEXT", help="What matters in it.", show_default=False)
    ] = None,
) -> None:
    """Change the interval, the reason or the instruction of a watch."""
    with options.get(ctx).open_client() as client:
        changed = client.update_watch(watch, watch_interval=interval, reason=reason, instruction=instruction)
    output.print_result(ctx, changed, f"updated {watch}")


@app.command(epilog=help_texts.example("task watch rm viking://resources/handbook"))
def rm(ctx: typer.Context, watch: WatchArgument) -> None:
    """End a watch. The resource stays."""
    with options.get(ctx).open_client() as client:
        output.print_result(ctx, client.delete_watch(watch), f"ended {watch}")


@app.command(epilog=help_texts.example("task watch trigger viking://resources/handbook"))
def trigger(ctx: typer.Context, watch: WatchArgument) -> None:
    """Read the source of a watch now."""
    with options.get(ctx).open_client(run_tasks=True) as client:
        triggered = client.trigger_watch(watch)
        output.print_result(ctx, triggered, f"started {triggered.task_id}")
