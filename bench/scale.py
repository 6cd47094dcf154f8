"""Sizes of the measurements, and the input that each part of the bench gets."""

from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Scale(msgspec.Struct, frozen=True):
    append_rounds: int
    long_session_messages: int
    """Number of messages in the long session, whose appends and forks are measured."""
    growth_blocks: int
    """Each block has a new short session and `growth_rounds` appends."""
    growth_rounds: int
    forks: int
    thread_rounds: int
    thread_seconds: float
    """Duration of each phase of a round."""
    raw_sql_batches: int
    """Number of batches in each round of the raw SQL loop. A batch has the statements of 64 appends."""
    read_rounds: int
    live_messages: int
    """Number of live messages that a short commit archives."""
    commit_rounds: int
    long_commit_rounds: int
    long_commit_factor: int
    """How many times as many messages a long commit has as a short one."""
    commit_until_done_rounds: int
    """Number of commits that are measured until their background task is done."""
    archives: int
    committing_sessions: int
    deleted_messages: int
    collaborators: int
    shared_sessions: int
    """Number of sessions that others share with one user."""
    owners: int
    own_sessions: int
    sharing_rounds: int
    tree_entries: int
    """Number of files in one folder."""
    tree_files: int
    """Number of files of 10 KB."""
    tree_rounds: int
    recall_messages: int
    """Number of messages of a user whose searches are measured."""
    recall_rounds: int
    recall_hostile: int
    recall_own: int
    recall_all: int
    """Number of messages of a user, and of the account, in the long measurement of searches."""
    startups: int
    server_rounds: int
    server_seconds: float
    """Duration of each phase of a round."""
    appends_alone_seconds: float
    """Duration of the appends over HTTP before and after the commits, together."""
    appends_phase_seconds: float
    """How long appends run before the commits are checked again."""
    postgres_rounds: int
    postgres_warm_up_seconds: float
    sample_step: int
    """Only every `sample_step`-th recorded trajectory and conversation is measured."""


FULL = Scale(
    append_rounds=5_000,
    long_session_messages=100_000,
    growth_blocks=20,
    growth_rounds=100,
    forks=30,
    thread_rounds=4,
    thread_seconds=2.0,
    raw_sql_batches=60,
    read_rounds=400,
    live_messages=500,
    commit_rounds=60,
    long_commit_rounds=20,
    long_commit_factor=10,
    commit_until_done_rounds=12,
    archives=100,
    committing_sessions=200,
    deleted_messages=60_000,
    collaborators=1_000,
    shared_sessions=100_000,
    owners=1_000,
    own_sessions=1_000,
    sharing_rounds=200,
    tree_entries=100_000,
    tree_files=10_000,
    tree_rounds=5,
    recall_messages=10_000,
    recall_rounds=100,
    recall_hostile=5,
    recall_own=100_000,
    recall_all=1_000_000,
    startups=9,
    server_rounds=8,
    server_seconds=0.6,
    appends_alone_seconds=6.0,
    appends_phase_seconds=0.5,
    postgres_rounds=1_500,
    postgres_warm_up_seconds=0.5,
    sample_step=1,
)
QUICK = Scale(
    append_rounds=100,
    long_session_messages=1_000,
    growth_blocks=2,
    growth_rounds=50,
    forks=5,
    thread_rounds=1,
    thread_seconds=0.1,
    raw_sql_batches=2,
    read_rounds=5,
    live_messages=100,
    commit_rounds=2,
    long_commit_rounds=1,
    long_commit_factor=2,
    commit_until_done_rounds=1,
    archives=2,
    committing_sessions=2,
    deleted_messages=1_200,
    collaborators=20,
    shared_sessions=400,
    owners=20,
    own_sessions=40,
    sharing_rounds=3,
    tree_entries=2_000,
    tree_files=100,
    tree_rounds=2,
    recall_messages=200,
    recall_rounds=3,
    recall_hostile=1,
    recall_own=200,
    recall_all=800,
    startups=1,
    server_rounds=1,
    server_seconds=0.1,
    appends_alone_seconds=0.2,
    appends_phase_seconds=0.1,
    postgres_rounds=20,
    postgres_warm_up_seconds=0.05,
    sample_step=20,
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
