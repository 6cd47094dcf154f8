"""A table is moved to another database in batches, one of which fails."""

from conversations.filler import log
from conversations.script import Conversation, Turn, assistant, failed, system, tool, user


def _batches(first: int, last: int) -> list[Turn]:
    turns: list[Turn] = []
    for batch in range(first, last + 1):
        start = batch * 250_000
        turns += [
            assistant(
                f"Copying batch {batch}.",
                tool(
                    "copy_batch",
                    {"table": "customers", "batch": batch, "from_id": start, "to_id": start + 249_999},
                    {"rows": 250_000 - batch * 31, "seconds": round(41.3 + batch * 0.7, 1), "status": "ok"},
                ),
                tool("read_log", {"batch": batch}, log(3, batch)),
            ),
            assistant(f"Batch {batch} is copied ({250_000 - batch * 31} rows)."),
        ]
    return turns


CONVERSATION = Conversation(
    name="data migration",
    language="en",
    messages=[
        system(
            "You are the data platform agent. All timestamps must be stored "
            "in UTC. Never print customer e-mail addresses."
        ),
        user(
            "We need to migrate the customers table from MySQL (mysql-legacy-02) to Postgres (pg-core-01). "
            "It has 8,412,977 rows. The maintenance window ends on 2026-04-12 at 05:00 UTC."
        ),
        assistant("I will copy in batches of 250,000 rows, verify counts and checksums, and then switch the writers."),
        user("The source must stay read-only during the copy. And keep the load on mysql-legacy-02 below 60%."),
        assistant(
            "",
            tool(
                "describe_table",
                {"host": "mysql-legacy-02", "table": "customers"},
                "id BIGINT, email VARCHAR(255), created DATETIME, balance DECIMAL(12,2), notes TEXT",
            ),
        ),
        *_batches(0, 15),
        assistant(
            "",
            failed(
                "copy_batch",
                {"table": "customers", "batch": 16, "from_id": 4_000_000, "to_id": 4_249_999},
                'DataError: invalid byte sequence for encoding "UTF8": 0x92 in column notes, row id 4118203',
            ),
        ),
        assistant("Batch 16 failed: row 4118203 has a Windows-1252 character (0x92) in column notes."),
        user("How many rows are affected?"),
        assistant(
            "",
            tool(
                "run_query",
                {"sql": "SELECT count(*) FROM customers WHERE notes REGEXP '[\\x80-\\x9f]'"},
                {"count": 1386},
            ),
        ),
        assistant("1,386 rows contain such characters, all created before 2014."),
        user(
            "Let's convert them with cp1252 instead of dropping them. Write the "
            "list of ids to /data/migration/cp1252_ids.csv."
        ),
        assistant(
            "Done: the converter is in scripts/fix_encoding.py and the ids are in /data/migration/cp1252_ids.csv.",
            tool("write_file", {"path": "/data/migration/cp1252_ids.csv"}, "1386 lines written"),
        ),
        *_batches(16, 33),
        assistant(
            "All batches are copied.",
            tool(
                "verify",
                {"table": "customers"},
                {"source_rows": 8412977, "target_rows": 8412975, "checksum": "mismatch", "missing": [5120044, 7733910]},
            ),
        ),
        assistant(
            "The target has 8,412,975 rows: ids 5120044 and 7733910 are missing, they were inserted after their batch."
        ),
        user("Copy these two and verify again. Do not switch the writers before Dana from billing has signed off."),
        assistant(
            "",
            tool("verify", {"table": "customers"}, {"source_rows": 8412977, "target_rows": 8412977, "checksum": "ok"}),
        ),
        assistant(
            "Both are copied; counts and checksums now match. Waiting for the "
            "sign-off of Dana before I switch the writers."
        ),
    ],
    essentials=[
        "mysql-legacy-02",
        "pg-core-01",
        "8,412,977",
        "2026-04-12",
        "05:00 UTC",
        "must stay read-only",
        "below 60%",
        "4118203",
        "1386",
        "/data/migration/cp1252_ids.csv",
        "Do not switch the writers before Dana from billing has signed off",
        "5120044",
        "7733910",
    ],
)
