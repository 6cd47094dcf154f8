"""Reading a thousand messages as objects, compared with reading the rows and parsing their JSON."""

import json
from typing import Any

import apsw

import holdfast
import raw
from measure import Figure, check_at_most, compute_statistics, time_interleaved
from scale import Setup
from texts import Texts

MESSAGES = 1_000
BATCH = 100


def measure(setup: Setup) -> list[Figure]:
    file = setup.folder / "holdfast.db"
    texts = Texts(seed=4)
    with holdfast.connect(file) as client:
        for _ in range(0, MESSAGES, BATCH):
            client.batch_add_messages("s", [{"role": "user", "content": text} for text in texts.several(BATCH)])
        connection = raw.connect(file)
        if len(client.get_messages("s", limit=MESSAGES).messages) != len(_raw_messages(connection)):
            raise AssertionError("the two reads return different numbers of messages")
        measured, baseline = map(
            compute_statistics,
            time_interleaved(
                setup.scale.read_rounds,
                lambda _: client.get_messages("s", limit=MESSAGES),
                lambda _: _raw_messages(connection),
                warm_up=10,
            ),
        )
        connection.close()
    ratio = measured.p50 / baseline.p50
    return [
        Figure(
            name=f"read {MESSAGES:,} messages as objects",
            measured=measured,
            baseline_name="raw rows + json.loads",
            baseline=baseline,
            ratio=ratio,
            checks=[check_at_most(1.0, ratio, "≤ 1.0x")],
        )
    ]


def _raw_messages(connection: apsw.Connection) -> list[Any]:
    rows: list[Any] = connection.execute(
        "SELECT id, role, created_at, seq, tokens, extra, parts FROM messages"
        " WHERE account_id = 'default' AND log_id = (SELECT log_id FROM sessions WHERE session_id = 's')"
        " ORDER BY seq LIMIT ?",
        (MESSAGES,),
    ).fetchall()
    return [json.loads(row[-1]) for row in rows]
