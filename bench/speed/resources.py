"""Adding 1,000 Markdown files of 10 KB as one resource, and adding them again unchanged, compared with unpacking them.

All times are CPU time, of the client, the workers and the child process together.
"""

import io
import resource
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import holdfast
from measure import Figure, Statistics, check_at_most
from scale import Setup
from texts import Texts

FILES = 1_000
FILE_CHARS = 10_000
MAX_CPU_SECONDS, MAX_CPU_SECONDS_AGAIN = 20.0, 1.0


def measure(setup: Setup) -> list[Figure]:
    folder = setup.folder / "documents"
    _write_files(folder)
    baseline = _cpu_seconds(lambda: _pack_and_unpack(folder))
    with holdfast.connect(setup.folder / "resources.db") as client:

        def add() -> None:
            added = client.add_resource(folder, to="viking://resources/documents", wait=True)
            assert (added.added or 0) + (added.unchanged or 0) == FILES

        first, again = _cpu_seconds(add), _cpu_seconds(add)
        found = len(client.find("unique777word", limit=5).resources)
    return [
        _figure(f"add {FILES:,} Markdown files", first, baseline, MAX_CPU_SECONDS, [f"found by a word: {found}"]),
        _figure(f"add {FILES:,} unchanged files again", again, baseline, MAX_CPU_SECONDS_AGAIN, []),
    ]


def _figure(name: str, seconds: float, baseline: float, limit: float, notes: list[str]) -> Figure:
    return Figure(
        name=name,
        measured=_once(seconds),
        baseline_name="zip and unzip the same files",
        baseline=_once(baseline),
        ratio=seconds / baseline,
        checks=[check_at_most(limit, seconds, f"CPU < {limit:g} s")],
        notes=[f"{name}: {seconds:.2f} s of CPU time", *notes],
    )


def _once(seconds: float) -> Statistics:
    return Statistics(count=1, mean=seconds, p50=seconds, p99=seconds, max=seconds, cpu=seconds)


def _write_files(folder: Path) -> None:
    texts = Texts(seed=7)
    for number in range(FILES):
        text = f"# Document {number}\n\nunique{number}word\n\n"
        while len(text) < FILE_CHARS:
            text += f"## Section {len(text)}\n\n{texts.one()}\n\n"
        file = folder / f"part{number % 20}" / f"file{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def _pack_and_unpack(folder: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in sorted(folder.rglob("*.md")):
            archive.writestr(str(file.relative_to(folder)), file.read_bytes())
    with zipfile.ZipFile(packed) as archive:
        for name in archive.namelist():
            archive.read(name)


def _cpu_seconds(work: Callable[[], object]) -> float:
    begun = _cpu_time()
    work()
    return _cpu_time() - begun


def _cpu_time() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
