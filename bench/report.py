"""Output of the figures, as a table and as JSON."""

import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from measure import Figure
from quality.figures import QualityFigure
from scale import Scale


def terminal() -> Console:
    return Console(width=None if sys.stdout.isatty() else 100)


def show(console: Console, figures: Sequence[Figure]) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("operation [dim]/ baseline[/]")
    for heading in ("p50", "p99", "CPU", "base p50", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("target", ""):
        table.add_column(heading, no_wrap=True)
    for figure in figures:
        table.add_row(
            f"{figure.name}\n[dim]/ {figure.baseline_name}[/]",
            _time(figure.measured.p50),
            _time(figure.measured.p99),
            _time(figure.measured.cpu),
            _time(figure.baseline.p50),
            f"{figure.ratio:.2f}x",
            "\n".join(check.target for check in figure.checks),
            "\n".join("[green]✓[/]" if check.met else "[red]✗[/]" for check in figure.checks),
        )
    console.print(table)
    for note in (note for figure in figures for note in figure.notes):
        console.print(f"  {note}", highlight=False, soft_wrap=True)
    missed = [figure.name for figure in figures if not figure.met]
    console.print(f"[red]Missed:[/] {', '.join(missed)}" if missed else "[green]All targets are met.[/]")


def write(
    folder: Path, figures: Sequence[Figure], context_figures: Sequence[QualityFigure], scale: Scale, *, quick: bool
) -> Path:
    at = datetime.now(UTC)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{at:%Y%m%dT%H%M%SZ}.json"
    document = {
        "at": at,
        "quick": quick,
        "machine": _machine(),
        "scale": scale,
        "figures": [{**msgspec.to_builtins(figure), "met": figure.met} for figure in figures],
        "context_figures": context_figures,
    }
    file.write_bytes(msgspec.json.format(msgspec.json.encode(document)))
    return file


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "apsw": apsw.apsw_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _time(seconds: float) -> str:
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.2f} s"
