"""Measure what Holdfast costs, as ratios to a raw baseline in the same run, and what a model is shown."""

import argparse
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import report
from measure import Figure
from quality import parts as quality
from scale import FULL, QUICK, Scale, Setup
from server import serving
from speed import appends, commits, crowd, length, reads, startup

RESULTS = Path(__file__).parent / "results"

PARTS: dict[str, Callable[[Setup], list[Figure]]] = {
    "appends": appends.measure,
    "length": length.measure,
    "threads": crowd.measure,
    "reads": reads.measure,
    "commits": commits.measure,
    "startup": startup.measure,
    "server": serving.measure,
}

TEACHING = """\
parts:
  appends   one durable append against one raw SQLite insert of the same bytes (WAL, synchronous=FULL),
            and against the bare statements of the append
  length    an append to a session of 100,000 messages against one of 100; a fork of the long one
  threads   64 threads on 200 sessions against one thread, and against a raw loop of group commits
  reads     1,000 messages as objects against raw rows and json.loads
  commits   a commit of 500 live messages against one raw insert, and against one of 5,000; the time until it is
            done, without a model and with one that answers at once; a context with 100 archives; appends while 200
            sessions are committed
  startup   import holdfast in a new process against an empty one
  agents    what an agent will need after a commit, on real traffic (HOLDFAST_DATA)
  rules     standing rules and preferences that are kept word for word
  budgets   contexts at every budget, counted as a model counts
  server    appends over HTTP from 8 and 64 clients against an echo on the same stack (Starlette, uvicorn, msgspec),
            and the start of both servers

reading the table:
  p50, p99  wall time of one repetition;  CPU  mean CPU time of one
  ratio     p50 against the baseline's p50 (for threads and clients: that of their rates per second)
  A busy machine moves times a lot and ratios little: compare ratios. A missed target does not fail the run.

examples:
  make bench                                  everything, in less than three minutes
  python bench/bench.py --only appends reads  two parts
  python bench/bench.py --quick               a few seconds: whether it works, not how fast
  python bench/bench.py --dir /mnt/disk       on another disk; a folder in memory would sync nothing
"""


def main() -> None:
    options = _options()
    scale = QUICK if options.quick else FULL
    console = report.terminal()
    figures: list[Figure] = []
    options.dir.mkdir(parents=True, exist_ok=True)
    # A process for each part: the heap that one leaves behind would move the figures of the next by some percent.
    chosen = options.only or [*PARTS, *quality.PARTS]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        for name in (name for name in chosen if name in PARTS):
            figures += processes.submit(measure, name, options.dir, scale).result()
        shown = [
            figure
            for name in chosen
            if name in quality.PARTS
            for figure in processes.submit(quality.measure, name, options.dir, scale).result()
        ]
    if figures:
        report.show(console, figures)
    if shown:
        quality.show(console, shown)
    file = report.write(options.out, figures, shown, scale, quick=options.quick)
    console.print(f"Written to {file}", highlight=False, soft_wrap=True)


def measure(name: str, where: Path, scale: Scale) -> list[Figure]:
    with tempfile.TemporaryDirectory(dir=where, prefix=f"{name}-") as folder:
        return PARTS[name](Setup(Path(folder), scale, report.terminal()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=TEACHING, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=[*PARTS, *quality.PARTS], metavar="PART", help="run these parts alone"
    )
    parser.add_argument("--quick", action="store_true", help="a short run with small sizes")
    parser.add_argument(
        "--dir", type=Path, default=RESULTS, help="where the databases are made for the time of the run"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the JSON is written")
    return parser.parse_args()


if __name__ == "__main__":
    main()
