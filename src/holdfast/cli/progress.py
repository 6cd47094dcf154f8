"""A bar for work that takes a while, on the error output, where there is a terminal to draw it on."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast import lazy

Progress = Callable[[int, int, str], None]
"""Takes how much is done, of how much, and what is at hand."""


@contextmanager
def bar(title: str) -> Iterator[Progress]:
    if not sys.stderr.isatty():
        yield _nothing
        return
    rich = lazy.rich_progress
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TextColumn("{task.fields[label]}", style="dim", markup=False),
    )
    with rich.Progress(*columns, console=lazy.rich_console.Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(title, total=None, label="")
        yield lambda done, total, label: drawn.update(task, completed=done, total=total, label=label)


def _nothing(_done: int, _total: int, _label: str) -> None:
    pass
