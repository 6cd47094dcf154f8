"""One durable append, compared with a raw insert of the same bytes and with its SQL statements alone."""

import msgspec

import holdfast
import raw
from measure import Figure, check_at_most, compute_statistics, time_interleaved
from scale import Setup
from texts import Texts

WARM_UP = 200


def measure(setup: Setup) -> list[Figure]:
    rounds = setup.scale.append_rounds
    texts = Texts(seed=1).several(WARM_UP + rounds)
    bodies = [msgspec.json.encode([holdfast.TextPart(text)]).decode() for text in texts]
    recording = raw.record_appends([("s", text) for text in texts])
    insert_log, replayed = raw.connect_insert_log(setup.folder / "raw.db"), raw.connect(setup.folder / "replayed.db")
    raw.replay(replayed, recording.opening)
    with holdfast.connect(setup.folder / "holdfast.db") as client:
        client.create_session("s")
        for name in ("raw.db", "replayed.db", "holdfast.db"):
            raw.fill_wal(setup.folder / name)
        measured, inserts, statements = map(
            compute_statistics,
            time_interleaved(
                rounds,
                lambda number: client.add_message("s", "user", texts[number]),
                lambda number: insert_log.execute("INSERT INTO raw (body) VALUES (?)", (bodies[number],)),
                lambda number: raw.replay(replayed, recording.appends[number]),
                warm_up=WARM_UP,
            ),
        )
    insert_log.close()
    replayed.close()
    ratio, statements_ratio = measured.p50 / inserts.p50, statements.p50 / inserts.p50
    mean_ratio = measured.mean / inserts.mean
    note = (
        f"append: {mean_ratio:.2f}x on average; its SQL statements alone are {statements_ratio:.2f}x"
        f" and {statements.cpu * 1e6:.0f} of its {measured.cpu * 1e6:.0f} µs CPU"
    )
    return [
        Figure(
            name="one durable append",
            measured=measured,
            baseline_name="a raw WAL+FULL insert",
            baseline=inserts,
            ratio=ratio,
            checks=[check_at_most(1.6, ratio, "≤ 1.6x")],
            notes=[note],
            extra_values={
                "mean_ratio": mean_ratio,
                "bare_statements_p50": statements.p50,
                "bare_statements_p99": statements.p99,
                "bare_statements_cpu": statements.cpu,
                "bare_statements_ratio": statements_ratio,
            },
        )
    ]
