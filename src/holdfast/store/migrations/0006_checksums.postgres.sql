-- Messages and archives have a checksum of their columns, so that damage is noticed when they are read.
ALTER TABLE messages ADD COLUMN checksum bigint;
ALTER TABLE archives ADD COLUMN checksum bigint;
ALTER TABLE archives ADD COLUMN summary_checksum bigint;

-- The tables with rows of earlier versions, which have no checksum until the backfill has computed them.
CREATE TABLE unchecked_tables (
    table_name text NOT NULL PRIMARY KEY
);

INSERT INTO unchecked_tables SELECT 'messages' WHERE EXISTS (SELECT 1 FROM messages);
INSERT INTO unchecked_tables SELECT 'archives' WHERE EXISTS (SELECT 1 FROM archives);

-- Damaged rows as they were found, in place of which `holdfast doctor --fix` has put readable ones.
CREATE TABLE quarantine (
    account_id     text NOT NULL,
    id             text NOT NULL,
    table_name     text NOT NULL,
    log_id         bigint NOT NULL,
    number         bigint NOT NULL,
    quarantined_at bigint NOT NULL,
    reason         text NOT NULL,
    content        text NOT NULL,
    PRIMARY KEY (account_id, id)
);

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
-- An estimate, because counting the rows of a large table takes seconds. It may be -1.
FROM (
    SELECT (SELECT GREATEST(1, reltuples)::bigint FROM pg_class WHERE oid = 'messages'::regclass) AS old_count,
           (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
) AS counted
WHERE EXISTS (SELECT 1 FROM messages);

ALTER TABLE quarantine ENABLE ROW LEVEL SECURITY;
ALTER TABLE quarantine FORCE ROW LEVEL SECURITY;
CREATE POLICY own_account ON quarantine USING (current_setting('holdfast.account', true) IN (account_id, '*'));
