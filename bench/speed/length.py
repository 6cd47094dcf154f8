"""Appends to a long session, compared with a short one, and forks of the long session."""

from pathlib import Path

import holdfast
import raw
from measure import Figure, Series, check_at_most, compute_statistics, join_series, time_interleaved
from scale import Setup
from texts import Texts

SHORT_SESSION = 100
BATCH = 100
WARM_UP = 10


def measure(setup: Setup) -> list[Figure]:
    texts = Texts(seed=2)
    with holdfast.connect(setup.folder / "long.db") as client:
        _fill(setup, client, texts, setup.scale.long_session_messages)
        return [_growth(setup, client, texts), _fork(setup, client, texts)]


def _growth(setup: Setup, long: holdfast.Client, texts: Texts) -> Figure:
    scale = setup.scale
    blocks = [_block(setup, long, texts, setup.folder / f"short{number}.db") for number in range(scale.growth_blocks)]
    measured, baseline = (compute_statistics(join_series(several)) for several in zip(*blocks, strict=True))
    ratio = measured.p50 / baseline.p50
    return Figure(
        name=f"append at message {scale.long_session_messages:,}",
        measured=measured,
        baseline_name=f"the same at message {SHORT_SESSION}",
        baseline=baseline,
        ratio=ratio,
        checks=[check_at_most(1.2, ratio, "≤ 1.2x")],
    )


def _block(setup: Setup, long: holdfast.Client, texts: Texts, file: Path) -> list[Series]:
    """Append to the long session and to a new short one, which stays short."""
    prepared = texts.several(WARM_UP + setup.scale.growth_rounds)
    with holdfast.connect(file) as short:
        _fill(setup, short, texts, SHORT_SESSION)
        raw.fill_wal(file)
        return time_interleaved(
            setup.scale.growth_rounds,
            lambda number: long.add_message("s", "user", prepared[number]),
            lambda number: short.add_message("s", "user", prepared[number]),
            warm_up=WARM_UP,
        )


def _fork(setup: Setup, client: holdfast.Client, texts: Texts) -> Figure:
    log = raw.connect_insert_log(setup.folder / "raw.db")
    raw.fill_wal(setup.folder / "raw.db")
    body = texts.one()
    measured, baseline = map(
        compute_statistics,
        time_interleaved(
            setup.scale.forks,
            lambda _: client.fork_session("s"),
            lambda _: log.execute("INSERT INTO raw (body) VALUES (?)", (body,)),
            warm_up=3,
        ),
    )
    log.close()
    return Figure(
        name=f"fork of {setup.scale.long_session_messages:,} messages",
        measured=measured,
        baseline_name="a raw WAL+FULL insert",
        baseline=baseline,
        ratio=measured.p50 / baseline.p50,
        checks=[check_at_most(0.005, measured.p50, "< 5 ms")],
        notes=[f"fork: the slowest of {measured.count} took {measured.max * 1e3:.2f} ms"],
    )


def _fill(setup: Setup, client: holdfast.Client, texts: Texts, count: int) -> None:
    with setup.progress() as progress:
        task = progress.add_task(f"filling a session of {count:,}", total=count, visible=count > SHORT_SESSION)
        for _ in range(0, count, BATCH):
            client.batch_add_messages("s", [{"role": "user", "content": text} for text in texts.several(BATCH)])
            progress.advance(task, BATCH)
