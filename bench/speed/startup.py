"""The cost of `import holdfast` in a new process, compared with starting Python."""

import resource
import subprocess
import sys
import time
from statistics import median

from measure import Figure, Series, check_at_most, compute_statistics
from scale import Setup

SLOW_MODULES = ("apsw", "asyncio", "httpx2", "numpy", "psycopg", "rich")
"""Modules that must not be imported before they are used."""

IMPORT = f"import sys, holdfast; print(*[name for name in {SLOW_MODULES} if name in sys.modules])"


def measure(setup: Setup) -> list[Figure]:
    imports: list[tuple[float, float]] = []
    baselines: list[tuple[float, float]] = []
    loaded: list[str] = []
    _run("import holdfast")  # the first import may compile
    for _ in range(setup.scale.startups):
        wall, cpu, output = _run(IMPORT)
        loaded = output.split()
        imports.append((wall, cpu))
        baselines.append(_run("pass")[:2])
    measured, baseline = compute_statistics(_series(imports)), compute_statistics(_series(baselines))
    cpu = median(cpu for _, cpu in imports)
    note = (
        f"import: {cpu:.3f} s CPU, of which {median(cpu for _, cpu in baselines):.3f} s is Python itself;"
        f" slow modules imported: {', '.join(loaded) or 'none'}"
    )
    return [
        Figure(
            name="import holdfast",
            measured=measured,
            baseline_name="python -c pass",
            baseline=baseline,
            ratio=measured.p50 / baseline.p50,
            checks=[
                check_at_most(0.25, cpu, "< 0.25 s CPU"),
                check_at_most(0, len(loaded), "none slow"),
            ],
            notes=[note],
            extra_values={"heavy": loaded},
        )
    ]


def _run(code: str) -> tuple[float, float, str]:
    """Run `code` in a new interpreter. Return wall time, CPU time and output."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def _series(runs: list[tuple[float, float]]) -> Series:
    return Series([wall for wall, _ in runs], sum(cpu for _, cpu in runs))
