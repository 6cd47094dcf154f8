-- Tasks of many kinds. A task is about a subject, and need not have an archive: what only one kind needs is its payload.
-- Tasks with one order key run one after the other, by position and id. A task that waits for another has no `run_at`.
-- The completed tasks of earlier versions stay in `old_tasks`. A backfill moves them while the database is in use.
ALTER TABLE tasks RENAME TO old_tasks;

CREATE TABLE tasks (
    account_id        text NOT NULL,
    task_id           text NOT NULL,
    user_id           text NOT NULL,
    kind              text NOT NULL,
    status            text NOT NULL,
    resource_id       text NOT NULL,
    subject           text,
    order_key         text,
    order_position    bigint NOT NULL,
    payload           text NOT NULL,
    stage             text,
    steps_done        bigint NOT NULL,
    steps_total       bigint NOT NULL,
    run_at            bigint,
    fence             bigint NOT NULL,
    attempts          bigint NOT NULL,
    failures          bigint NOT NULL,
    created_at        bigint NOT NULL,
    updated_at        bigint NOT NULL,
    worked            bigint NOT NULL,
    prompt_tokens     bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    total_tokens      bigint NOT NULL,
    cached_tokens     bigint NOT NULL,
    reasoning_tokens  bigint NOT NULL,
    embedding_tokens  bigint NOT NULL,
    result            text,
    error_code        text,
    error             text,
    PRIMARY KEY (account_id, task_id)
);

CREATE INDEX tasks_by_run_at ON tasks (run_at) WHERE run_at IS NOT NULL;
CREATE INDEX tasks_by_order_key ON tasks (account_id, order_key);
CREATE INDEX tasks_in_order ON tasks (account_id, order_key, order_position, task_id)
    WHERE status IN ('pending', 'running', 'failed');
CREATE INDEX tasks_by_status ON tasks (account_id, user_id, status, task_id)
    WHERE status IN ('pending', 'running', 'failed');
CREATE INDEX tasks_by_completion ON tasks (kind, updated_at) WHERE status = 'completed';

ALTER TABLE tasks ENABLE ROW LEVEL SECURITY;
ALTER TABLE tasks FORCE ROW LEVEL SECURITY;
CREATE POLICY own_account ON tasks USING (current_setting('holdfast.account', true) IN (account_id, '*'));

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
FROM (SELECT COUNT(*) AS old_count, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now FROM old_tasks) AS counted
WHERE old_count > 0;
