"""What `import holdfast` costs, in processes of its own, against starting Python and doing nothing."""

import resource
import subprocess
import sys
import time
from statistics import median

from measure import Figure, Series, at_most, summary
from scale import Setup

HEAVY = ("apsw", "asyncio", "httpx2", "numpy", "psycopg", "rich")
"""What an import must leave alone until it is used."""

IMPORT = f"import sys, holdfast; print(*[name for name in {HEAVY} if name in sys.modules])"


def measure(setup: Setup) -> list[Figure]:
    imports: list[tuple[float, float]] = []
    nothings: list[tuple[float, float]] = []
    loaded: list[str] = []
    _run("import holdfast")  # the first one may compile
    for _ in range(setup.scale.startups):
        wall, cpu, output = _run(IMPORT)
        loaded = output.split()
        imports.append((wall, cpu))
        nothings.append(_run("pass")[:2])
    ours, baseline = summary(_series(imports)), summary(_series(nothings))
    cpu = median(cpu for _, cpu in imports)
    note = (
        f"import: {cpu:.3f} s CPU, of which {median(cpu for _, cpu in nothings):.3f} s are Python's own;"
        f" heavy modules loaded by it: {', '.join(loaded) or 'none'}"
    )
    return [
        Figure(
            work="import holdfast",
            ours=ours,
            against="python -c pass",
            baseline=baseline,
            ratio=ours.p50 / baseline.p50,
            checks=[
                at_most(0.25, cpu, "< 0.25 s CPU"),
                at_most(0, len(loaded), "nothing heavy"),
            ],
            notes=[note],
            more={"heavy": loaded},
        )
    ]


def _run(code: str) -> tuple[float, float, str]:
    """Wall and CPU seconds of a new interpreter that runs `code`, and what it prints."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def _series(runs: list[tuple[float, float]]) -> Series:
    return Series([wall for wall, _ in runs], sum(cpu for _, cpu in runs))
