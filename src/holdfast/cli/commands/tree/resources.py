"""`holdfast add-resource`: files, folders, archives and pages as resources."""

import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import errors, help_texts, options, output
from holdfast.cli.output import Column
from holdfast.cli.progress import progress_bar
from holdfast.errors import HoldfastError, InvalidArgumentError, NotFoundError, short_repr
from holdfast.model.tree.resources import FileProblem, ResourceAdded

if TYPE_CHECKING:
    from holdfast import Client

app = typer.Typer(rich_markup_mode=None)
COLUMNS = (
    Column("resource", lambda row: row.root_uri, shrinks=True),
    Column("status", lambda row: "incomplete" if row.errors else row.status),
    Column("added", lambda row: row.added, align_right=True),
    Column("changed", lambda row: row.changed, align_right=True),
    Column("unchanged", lambda row: row.unchanged, align_right=True),
    Column("removed", lambda row: row.removed, align_right=True),
    Column("left out", lambda row: len(row.errors or ()), align_right=True),
)
MAX_MISSING = 10
"""How many files that a source does not have any more are named."""
ADVICE_TO_LEAVE_OUT = ("; it is left out", "; leave it out", ", or leave it out")
"""Ends of messages that a line about a file that was left out does not need."""
ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="URI", help="The address of the resource: new, or to be updated.", show_default=False),
]
ParentOption = Annotated[
    str | None, typer.Option("--parent", metavar="URI", help="The folder for new resources.", show_default=False)
]
NameOption = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Another name for the source.", show_default=False)
]
IncludeOption = Annotated[
    str | None, typer.Option("--include", metavar="PATTERNS", help="Only such files.", show_default=False)
]
ExcludeOption = Annotated[
    str | None, typer.Option("--exclude", metavar="PATTERNS", help="No such files.", show_default=False)
]
IgnoreOption = Annotated[
    str | None,
    typer.Option(
        "--ignore-dirs",
        metavar="NAMES",
        help="Folders to leave out; by default .git,node_modules,__pycache__.",
        show_default=False,
    ),
]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="A tag; may be repeated.", show_default=False)
]
TimeoutOption = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", help="How long to wait.", show_default=False)
]
IntervalOption = Annotated[
    float, typer.Option("--watch-interval", metavar="MINUTES", help="Read the source again and again.")
]


@app.command(
    name="add-resource",
    epilog=help_texts.example(
        "add-resource guide.md",
        "add-resource docs --to viking://resources/docs --sync --include '*.md,*.txt'",
        "add-resource https://docs.example/guide.html --to viking://resources/guide --watch-interval 60",
    ),
)
def add_resource(
    ctx: typer.Context,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Files, folders, zip archives or URLs.", show_default=False)
    ],
    to: ToOption = None,
    parent: ParentOption = None,
    create_parent: Annotated[bool, typer.Option("--create-parent", "-p", help="Make the folder, too.")] = False,
    name: NameOption = None,
    sync: Annotated[bool, typer.Option("--sync", help="Remove files that the source does not have any more.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Add nothing if one file cannot be read.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it is added.")] = "",
    instruction: Annotated[str, typer.Option("--instruction", metavar="TEXT", help="What matters in it.")] = "",
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    ignore_dirs: IgnoreOption = None,
    tag: TagOption = None,
    watch_interval: IntervalOption = 0,
    timeout: TimeoutOption = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return at once; a background task goes on.")] = False,
) -> None:
    """Add files, folders, zip archives or URLs to the tree as resources.

    Adding a resource again with `--to` updates it: unchanged files stay as they are, and a changed file gets a new
    version. A file that cannot be read is named and left out, and the exit code is 1.
    """
    if not all(path.strip() for path in paths):
        raise InvalidArgumentError("PATH", "is empty; name a file, a folder or a URL")
    if to is not None and len(paths) > 1:
        raise InvalidArgumentError("to", "names one resource; add several paths with --parent")
    settings = {
        "to": to,
        "parent": parent,
        "create_parent": create_parent,
        "name": name,
        "sync": sync,
        "strict": strict,
        "reason": reason,
        "instruction": instruction,
        "include": include,
        "exclude": exclude,
        "ignore_dirs": ignore_dirs,
        "tags": tag,
        "watch_interval": watch_interval,
    }
    with options.get(ctx).open_client(run_tasks=not no_wait) as client:
        _add_all(ctx, client, paths, settings, None if no_wait else timeout, waits=not no_wait)


def _add_all(
    ctx: typer.Context,
    client: "Client",
    paths: list[str],
    settings: Mapping[str, Any],
    timeout: float | None,
    *,
    waits: bool,
) -> None:
    added: list[ResourceAdded] = []
    hints: list[str] = []
    failures = 0
    for path in paths:
        try:
            with progress_bar(path) as progress:
                resource = client.add_resource(path, wait=waits, timeout=timeout, on_progress=progress, **settings)
            added.append(resource)
            hints.append(_hint_of_same_name(client, path, resource, settings))
        except HoldfastError as error:
            if len(paths) == 1:
                raise
            failures += 1
            output.print_error(f"{path}: {errors.describe_error(error)[0]}")
    columns = COLUMNS if waits else (*COLUMNS[:2], Column("task", lambda row: row.task_id))
    output.print_rows(ctx, added, columns)
    for resource in added:
        for problem in resource.errors or ():
            output.print_notice(_describe_problem(problem))
            failures += 1
        missing = resource.missing or []
        if missing and not settings["sync"]:
            names = ", ".join(missing[:MAX_MISSING])
            are = output.count(len(missing), "file is", "files are")
            output.print_notice(f"{are} not in the source any more: {names}; --sync removes them")
    for hint in hints:
        if hint and options.get(ctx).is_table:
            output.print_notice(hint)
    if failures:
        raise typer.Exit(1)


def _describe_problem(problem: FileProblem) -> str:
    """Return a line about a file that was left out. It names the file once."""
    message = problem.message
    for ending in ADVICE_TO_LEAVE_OUT:
        message = message.removesuffix(ending)
    for name in (problem.file, PurePath(problem.file).name):
        message = message.removeprefix(f"{short_repr(name)} ")
    return f"left out: {problem.file}: {message}"


def _hint_of_same_name(client: "Client", path: str, added: ResourceAdded, settings: Mapping[str, Any]) -> str:
    """Return how to update the first resource, if a new one got a number because its name was taken."""
    first, underscore, number = added.root_uri.rpartition("_")
    name = PurePath(settings["name"] or path.rstrip("/")).name
    if settings["to"] or not underscore or not number.isdecimal() or f"_{number}" in name:
        return ""
    with suppress(NotFoundError):
        client.stat(first)
        return f"{first} exists already. To update it: holdfast add-resource {shlex.quote(path)} --to '{first}'"
    return ""
