-- Tasks of many kinds. A task is about a subject, and need not have an archive: what only one kind needs is its payload.
-- Tasks with one order key run one after the other, by position and id. A task that waits for another has no `run_at`.
-- The completed tasks of earlier versions stay in `old_tasks`. A backfill moves them while the database is in use.
ALTER TABLE tasks RENAME TO old_tasks;

CREATE TABLE tasks (
    account_id        TEXT NOT NULL,
    task_id           TEXT NOT NULL,
    user_id           TEXT NOT NULL,
    kind              TEXT NOT NULL,
    status            TEXT NOT NULL,
    resource_id       TEXT NOT NULL,
    subject           TEXT,
    order_key         TEXT,
    order_position    INTEGER NOT NULL,
    payload           TEXT NOT NULL,
    stage             TEXT,
    steps_done        INTEGER NOT NULL,
    steps_total       INTEGER NOT NULL,
    run_at            INTEGER,
    fence             INTEGER NOT NULL,
    attempts          INTEGER NOT NULL,
    failures          INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    worked            INTEGER NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    total_tokens      INTEGER NOT NULL,
    cached_tokens     INTEGER NOT NULL,
    reasoning_tokens  INTEGER NOT NULL,
    embedding_tokens  INTEGER NOT NULL,
    result            TEXT,
    error_code        TEXT,
    error             TEXT,
    PRIMARY KEY (account_id, task_id)
) STRICT;

CREATE INDEX tasks_by_run_at ON tasks (run_at) WHERE run_at IS NOT NULL;
CREATE INDEX tasks_by_order_key ON tasks (account_id, order_key);
CREATE INDEX tasks_in_order ON tasks (account_id, order_key, order_position, task_id)
    WHERE status IN ('pending', 'running', 'failed');
CREATE INDEX tasks_by_status ON tasks (account_id, user_id, status, task_id)
    WHERE status IN ('pending', 'running', 'failed');
CREATE INDEX tasks_by_completion ON tasks (kind, updated_at) WHERE status = 'completed';

-- All tasks, in the new form. A completed commit has its token counts in its result and its archive.
CREATE VIEW all_tasks AS
SELECT
    account_id, task_id, user_id, kind, status, resource_id, subject, order_key, order_position, payload, stage,
    steps_done, steps_total, run_at, fence, attempts, failures, created_at, updated_at, worked, prompt_tokens,
    completion_tokens, total_tokens, cached_tokens, reasoning_tokens, embedding_tokens, result, error_code,
    error
FROM tasks
UNION ALL
SELECT
    account_id, task_id, user_id, kind, status, resource_id,
    'viking://user/' || user_id || '/sessions/' || resource_id || '/history/archive_'
        || CASE WHEN number < 10 THEN '00' WHEN number < 100 THEN '0' ELSE '' END || number,
    'log:' || log_id, number, '{"log_id":' || log_id || ',"number":' || number || '}',
    stage, steps_done, steps_total, run_at, fence, attempts, failures, created_at, updated_at, worked,
    0, 0, 0, 0, 0, 0, result, error_code, error
FROM old_tasks;

-- Tasks that can still run need their new columns at once.
INSERT INTO tasks SELECT * FROM all_tasks WHERE status <> 'completed';
DELETE FROM old_tasks WHERE status <> 'completed';

INSERT INTO tasks (
    account_id, task_id, user_id, kind, status, resource_id, subject, order_key, order_position, payload, stage,
    steps_done, steps_total, run_at, fence, attempts, failures, created_at, updated_at, worked, prompt_tokens,
    completion_tokens, total_tokens, cached_tokens, reasoning_tokens, embedding_tokens, result, error_code,
    error
)
SELECT
    '*', 'task_backfill_0005_tasks', 'operator', 'backfill', 'pending', '0005_tasks', NULL, NULL, 0, '{"after":null}', NULL,
    0, old_count, now, 0, 0, 0, now, now, 0, 0,
    0, 0, 0, 0, 0, NULL, NULL,
    NULL
FROM (SELECT COUNT(*) AS old_count, CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS now FROM old_tasks) AS counted
WHERE old_count > 0;

-- By default a deletion that leaves a tenth of an index segment deleted rewrites the segment, in the same transaction.
-- That takes a second for 60,000 messages. Deleted entries now disappear when new messages cause a merge.
INSERT INTO message_text (message_text, rank) VALUES ('deletemerge', 0);
