-- Messages and archives have a checksum of their columns, so that damage is noticed when they are read.
ALTER TABLE messages ADD COLUMN checksum INTEGER;
ALTER TABLE archives ADD COLUMN checksum INTEGER;
ALTER TABLE archives ADD COLUMN summary_checksum INTEGER;

-- The tables with rows of earlier versions, which have no checksum until the backfill has computed them.
CREATE TABLE unchecked_tables (
    table_name TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

INSERT INTO unchecked_tables SELECT 'messages' WHERE EXISTS (SELECT 1 FROM messages);
INSERT INTO unchecked_tables SELECT 'archives' WHERE EXISTS (SELECT 1 FROM archives);

-- Damaged rows as they were found, in place of which `holdfast doctor --fix` has put readable ones.
CREATE TABLE quarantine (
    account_id     TEXT NOT NULL,
    id             TEXT NOT NULL,
    table_name     TEXT NOT NULL,
    log_id         INTEGER NOT NULL,
    number         INTEGER NOT NULL,
    quarantined_at INTEGER NOT NULL,
    reason         TEXT NOT NULL,
    content        TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;

INSERT INTO tasks (
    account_id, task_id, user_id, kind, status, resource_id, subject, order_key, order_position, payload, stage,
    steps_done, steps_total, run_at, fence, attempts, failures, created_at, updated_at, worked, prompt_tokens,
    completion_tokens, total_tokens, cached_tokens, reasoning_tokens, embedding_tokens, result, error_code,
    error
)
SELECT
    '*', 'task_backfill_0006_checksums', 'operator', 'backfill', 'pending', '0006_checksums', NULL, NULL, 0,
    '{"after":null}', NULL,
    0, old_count, now, 0, 0, 0, now, now, 0, 0,
    0, 0, 0, 0, 0, NULL, NULL,
    NULL
-- The last row number, because counting the rows of a large table takes seconds.
FROM (
    SELECT (SELECT MAX(n) FROM messages) AS old_count,
           CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS now
) AS counted
WHERE old_count > 0;
