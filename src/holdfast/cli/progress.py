"""A progress bar on standard error, if that is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast import lazy

if TYPE_CHECKING:
    from holdfast.exchange import ProgressCallback


@contextmanager
def progress_bar(title: str) -> Iterator["ProgressCallback"]:
    if not sys.stderr.isatty():
        yield _ignore
        return
    rich = lazy.rich_progress
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TextColumn("{task.fields[label]}", style="dim", markup=False),
    )
    with rich.Progress(*columns, console=lazy.rich_console.Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, label="")
        yield lambda done, total, label: progress.update(task, completed=done, total=total, label=label)


def _ignore(_done: int, _total: int, _label: str) -> None:
    pass
