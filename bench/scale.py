"""Sizes of the measurements, and their set-up."""

from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Scale(msgspec.Struct, frozen=True):
    append_rounds: int
    long_session: int
    growth_blocks: int
    """Each block has a new short session and `growth_rounds` appends."""
    growth_rounds: int
    forks: int
    thread_rounds: int
    thread_seconds: float
    """Duration of each phase of a round."""
    thread_raw_batches: int
    """Batches of 64 appends in each round."""
    read_rounds: int
    commit_rounds: int
    long_commits: int
    long_commit: int
    """Factor: how many times as many messages a long commit has."""
    commits_awaited: int
    archives: int
    committing_sessions: int
    startups: int
    server_rounds: int
    server_seconds: float
    """Duration of each phase of a round."""
    every: int
    """Only every n-th recorded trajectory and conversation is measured."""


FULL = Scale(
    append_rounds=5_000,
    long_session=100_000,
    growth_blocks=20,
    growth_rounds=100,
    forks=30,
    thread_rounds=4,
    thread_seconds=2.0,
    thread_raw_batches=60,
    read_rounds=400,
    commit_rounds=60,
    long_commits=20,
    long_commit=10,
    commits_awaited=12,
    archives=100,
    committing_sessions=200,
    startups=9,
    server_rounds=8,
    server_seconds=0.6,
    every=1,
)
QUICK = Scale(
    append_rounds=300,
    long_session=2_000,
    growth_blocks=2,
    growth_rounds=50,
    forks=5,
    thread_rounds=1,
    thread_seconds=0.4,
    thread_raw_batches=8,
    read_rounds=20,
    commit_rounds=6,
    long_commits=2,
    long_commit=2,
    commits_awaited=1,
    archives=5,
    committing_sessions=10,
    startups=2,
    server_rounds=1,
    server_seconds=0.3,
    every=12,
)


class Setup(msgspec.Struct, frozen=True):
    """The input of a part of the bench: an empty folder on the measured disk, sizes, and a console."""

    folder: Path
    scale: Scale
    console: Console

    def progress(self) -> Progress:
        return Progress(
            TextColumn("  {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
