"""Measure Holdfast's speed as ratios to raw baselines in the same run, and the content of the contexts it builds."""

import argparse
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import report
from measure import Figure
from quality import parts as quality
from scale import FULL, QUICK, Scale, Setup
from server import commits_under_load, http_appends, postgres
from speed import (
    appends,
    audits,
    commits,
    deletions,
    file_recall,
    length,
    reads,
    recall,
    resources,
    sharing,
    startup,
    threads,
    tree,
)

T = TypeVar("T")
RESULTS = Path(__file__).parent / "results"

PARTS: dict[str, Callable[[Setup], list[Figure]]] = {
    "appends": appends.measure,
    "length": length.measure,
    "threads": threads.measure,
    "audits": audits.measure,
    "reads": reads.measure,
    "commits": commits.measure,
    "deletions": deletions.measure,
    "sharing": sharing.measure,
    "tree": tree.measure,
    "resources": resources.measure,
    "recall": recall.measure,
    "recall-scale": recall.measure_scale,
    "recall-files": file_recall.measure,
    "startup": startup.measure,
    "server": http_appends.measure,
    "postgres": postgres.measure,
    "computing": commits_under_load.measure,
}

LONG_PARTS = {"recall-scale", "recall-files"}
"""Parts that run only if they are named, or in a quick run."""

EPILOG = """\
parts:
  appends   one durable append, compared with a raw SQLite insert of the same bytes (WAL, synchronous=FULL)
            and with the SQL statements of the append
  length    an append to a session of 100,000 messages, compared with one of 100; a fork of the long session
  threads   64 threads on 200 sessions, compared with one thread and with a raw loop of group commits
  audits    audited operations of 64 threads of one account, with the chain of the audit log and without it, on both
            databases
  reads     1,000 messages as objects, compared with raw rows and json.loads
  commits   a commit of 500 live messages, compared with a raw insert and with a commit of 5,000; the time until
            it is done, without a model and with one that responds at once; a context with 100 archives; appends
            while 200 sessions are committed
  deletions an append to another session while 60,000 messages are deleted, in slices and in one transaction
  sharing   a session with 1,000 collaborators, compared with one that is not shared; lists and reads of a user with
            100,000 sessions that others share, compared with users without; on both databases
  tree      the first page of a folder of 100,000 files, a tree with a limit, glob over 100,000 names and grep over
            10,000 files of 10 KB, compared with small folders and with reading the same rows, on both databases
  resources 1,000 Markdown files (10 MB) are added, and added again unchanged, compared with zipping and unzipping them
  recall    searches in 10,000 messages, compared with a numpy scan of the same vectors, on both databases;
            hostile queries; the first search of a process; messages that are appended, indexed and embedded
  recall-scale
            searches in 100,000 messages of a user among 1,000,000 of the account, on both databases; takes some
            minutes, and runs only if it is named, or in a quick run
  recall-files
            searches in 100,000 parts of files, with vectors in memory and from the best folders down; runs only if it
            is named, or in a quick run
  startup   import holdfast in a new process, compared with an empty process
  agents    the values that an agent needs after a commit, on recorded traffic (HOLDFAST_DATA)
  rules     standing rules and preferences that stay in the context word for word
  budgets   contexts at many budgets, with tokens counted as a model counts them
  server    appends over HTTP from 8 and 64 clients, compared with an echo server on the same stack (Starlette,
            uvicorn, msgspec), and the start of both servers
  postgres  an append on PostgreSQL with fsync on, compared with a raw INSERT with COMMIT; appends over HTTP from
            16 clients, compared with SQLite, and from two servers on one PostgreSQL
  computing appends over HTTP while 200 sessions are committed, compared with appends alone; summaries in a child
            process, and in threads of the server

reading the table:
  p50, p99  wall time of one repetition;  CPU  mean CPU time of one repetition
  ratio     p50 divided by the baseline's p50 (for threads and clients: ratio of the rates)
  Compare ratios: a busy machine changes times much more than ratios. A missed target does not fail the run.

examples:
  make bench                                  all parts, in a few minutes
  python bench/bench.py --only appends reads  two parts
  python bench/bench.py --quick               a few seconds; checks only that the bench works
  python bench/bench.py --dir /mnt/disk       on another disk; do not use a file system in memory
"""


def main() -> None:
    options = _parse_options()
    scale = QUICK if options.quick else FULL
    console = report.terminal()
    figures: list[Figure] = []
    options.dir.mkdir(parents=True, exist_ok=True)
    parts = options.only or [name for name in (*PARTS, *quality.PARTS) if options.quick or name not in LONG_PARTS]
    call = call_here if options.quick else call_in_new_process
    for name in (name for name in parts if name in PARTS):
        figures += call(measure, name, options.dir, scale)
    context_figures = [
        figure for name in parts if name in quality.PARTS for figure in call(quality.measure, name, options.dir, scale)
    ]
    if figures:
        report.show(console, figures)
    if context_figures:
        quality.show(console, context_figures)
    file = report.write(options.out, figures, context_figures, scale, quick=options.quick)
    console.print(f"Written to {file}", highlight=False, soft_wrap=True)


def call_in_new_process(function: Callable[..., list[T]], *arguments: object) -> list[T]:
    """The heap that one part leaves would change the figures of the next by some percent."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        return processes.submit(function, *arguments).result()


def call_here(function: Callable[..., list[T]], *arguments: object) -> list[T]:
    """A new process for each part would take most of the time of a quick run."""
    return function(*arguments)


def measure(name: str, parent: Path, scale: Scale) -> list[Figure]:
    with tempfile.TemporaryDirectory(dir=parent, prefix=f"{name}-") as folder:
        return PARTS[name](Setup(Path(folder), scale, report.terminal()))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=[*PARTS, *quality.PARTS], metavar="PART", help="run only these parts"
    )
    parser.add_argument("--quick", action="store_true", help="a short run with small sizes")
    parser.add_argument("--dir", type=Path, default=RESULTS, help="folder for the temporary databases")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the JSON results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
