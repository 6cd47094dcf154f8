"""Finding out why a service became slow."""

from conversations.filler import log
from conversations.script import Conversation, Turn, assistant, failed, tool, user


def _probes() -> list[Turn]:
    """Return rounds of searching: many numbers, none of which matters later."""
    turns: list[Turn] = []
    for at in range(12):
        minute = 10 + at * 3
        turns += [
            assistant(
                f"Looking at window {at + 1} of the trace.",
                tool(
                    "query_traces",
                    {"service": "orders-api", "from": f"09:{minute:02d}", "limit": 50},
                    {"spans": 50 + at, "mean_ms": 81 + at * 7, "slowest_ms": 400 + at * 13, "errors": 0},
                ),
                tool("read_log", {"service": "orders-api", "from": f"09:{minute:02d}"}, log(9, at)),
            ),
            assistant(f"Nothing unusual there: {50 + at} spans, mean around {81 + at * 7} ms."),
        ]
    return turns


CONVERSATION = Conversation(
    name="debugging a slow service",
    language="en",
    messages=[
        user(
            "Our orders-api has been slow since this morning. p99 went from 180 ms to 2340 ms. Can you find out why? "
            "The code is in /srv/orders-api and the dashboards are at https://grafana.example.net/d/orders-7f3."
        ),
        assistant(
            "I'll start with the logs and the recent deployments.",
            tool(
                "list_deployments",
                {"service": "orders-api", "limit": 3},
                [
                    {"version": "v4.18.2", "at": "2026-03-02T08:41:00Z", "by": "lena"},
                    {"version": "v4.18.1", "at": "2026-02-26T14:02:00Z", "by": "omar"},
                ],
            ),
        ),
        assistant("Version v4.18.2 was deployed at 08:41 today, right before the latency went up."),
        user("Please never restart the primary database, there are long-running exports on it."),
        assistant("Understood. I will leave the primary alone and look at the application first."),
        *_probes(),
        assistant(
            "Let me check the connection pool.",
            tool(
                "read_file", {"path": "/srv/orders-api/config/pool.yaml"}, "size: 5\nmax_overflow: 0\ntimeout_s: 30\n"
            ),
        ),
        assistant(
            "",
            failed(
                "run_query",
                {"sql": "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'", "host": "db-primary.internal"},
                "psycopg.OperationalError: connection to server at db-primary.internal (10.4.2.17), port 5433 failed: "
                "FATAL: remaining connection slots are reserved",
            ),
        ),
        assistant(
            "The root cause: commit 9f2c41e lowered the pool size from 40 to 5 in /srv/orders-api/config/pool.yaml, so "
            "requests queue for a connection."
        ),
        user("Good find. Set it back to 40, but don't touch the timeout."),
        assistant(
            "",
            tool(
                "edit_file",
                {"path": "/srv/orders-api/config/pool.yaml", "old": "size: 5", "new": "size: 40"},
                "1 replacement",
            ),
            failed(
                "run_tests", {"target": "tests/pool"}, "FAILED tests/pool/test_limits.py::test_size - assert 5 == 40"
            ),
        ),
        assistant(
            "The test still pinned the old size. I updated tests/pool/test_limits.py to expect 40; all 212 tests pass."
        ),
        user("Deploy it to staging first. Production deploys must go through ticket OPS-4471."),
        assistant(
            "", tool("deploy", {"service": "orders-api", "env": "staging"}, {"version": "v4.18.3", "status": "ok"})
        ),
        assistant("v4.18.3 is on staging and p99 there dropped to 176 ms."),
        user("Great. What is left?"),
        assistant(
            "Still to do: get approval in OPS-4471 and deploy v4.18.3 to "
            "production. We should also add an alert for pool "
            "waits above 200 ms next week."
        ),
    ],
    essentials=[
        "2340 ms",
        "/srv/orders-api/config/pool.yaml",
        "https://grafana.example.net/d/orders-7f3",
        "9f2c41e",
        "from 40 to 5",
        "v4.18.3",
        "OPS-4471",
        "never restart the primary database",
        "don't touch the timeout",
        "176 ms",
        "port 5433",
    ],
)
