"""Measures the quality of contexts: their content instead of their speed."""

import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import report
from quality.figures import QualityFigure
from scale import Scale, Setup

PARTS = ("agents", "rules", "budgets")
"""The modules of this folder that measure. Only the process that measures imports one, because that takes seconds."""


def measure(name: str, where: Path, scale: Scale) -> list[QualityFigure]:
    with tempfile.TemporaryDirectory(dir=where, prefix=f"{name}-") as folder:
        figures: list[QualityFigure] = import_module(f"quality.{name}").measure(
            Setup(Path(folder), scale, report.terminal())
        )
        return figures


def show(console: Console, figures: Sequence[QualityFigure]) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("content of contexts")
    for heading in ("measured", "target"):
        table.add_column(heading, no_wrap=True)
    table.add_column("", no_wrap=True)
    for figure in figures:
        mark = "[green]✓[/]" if figure.met else "[red]✗[/]"
        table.add_row(figure.name, figure.measured, figure.target, mark if figure.target else "")
    console.print(table)
    for note in (note for figure in figures for note in figure.notes):
        console.print(f"  {note}", highlight=False, soft_wrap=True)
