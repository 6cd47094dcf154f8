"""One durable append, as a user makes it, against one raw insert of the same bytes and against the bare statements."""

import msgspec

import holdfast
import raw
from measure import Figure, at_most, interleaved, summary
from scale import Setup
from texts import Texts

WARM_UP = 200


def measure(setup: Setup) -> list[Figure]:
    rounds = setup.scale.append_rounds
    texts = Texts(seed=1).several(WARM_UP + rounds)
    bodies = [msgspec.json.encode([holdfast.TextPart(text)]).decode() for text in texts]
    recording = raw.record_appends([("s", text) for text in texts])
    log, bare = raw.connect_log(setup.folder / "raw.db"), raw.connect(setup.folder / "bare.db")
    raw.replay(bare, recording.opening)
    with holdfast.connect(setup.folder / "ours.db") as client:
        client.create_session("s")
        for name in ("raw.db", "bare.db", "ours.db"):
            raw.wrap_log(setup.folder / name)
        ours, inserts, statements = map(
            summary,
            interleaved(
                rounds,
                lambda number: client.add_message("s", "user", texts[number]),
                lambda number: log.execute("INSERT INTO raw (body) VALUES (?)", (bodies[number],)),
                lambda number: raw.replay(bare, recording.appends[number]),
                warm_up=WARM_UP,
            ),
        )
    log.close()
    bare.close()
    ratio, of_bare = ours.p50 / inserts.p50, statements.p50 / inserts.p50
    of_mean = ours.mean / inserts.mean
    note = (
        f"append: {of_mean:.2f}x on average; its bare statements alone are {of_bare:.2f}x"
        f" and {statements.cpu * 1e6:.0f} of its {ours.cpu * 1e6:.0f} µs CPU"
    )
    return [
        Figure(
            work="one durable append",
            ours=ours,
            against="a raw WAL+FULL insert",
            baseline=inserts,
            ratio=ratio,
            checks=[at_most(1.6, ratio, "≤ 1.6x")],
            notes=[note],
            more={
                "mean_ratio": of_mean,
                "bare_statements_p50": statements.p50,
                "bare_statements_p99": statements.p99,
                "bare_statements_cpu": statements.cpu,
                "bare_statements_ratio": of_bare,
            },
        )
    ]
