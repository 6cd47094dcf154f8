-- Times that decide (when a task is due, a lease ends, a row is old) are times of the database's clock, which is the
-- clock of the server. No client's clock decides anything.
CREATE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

-- Every write of a client calls this for newer schemas than it knows: such a client must not write.
CREATE FUNCTION holdfast_refuse_schema(newest bigint) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'HF001', MESSAGE = 'the schema is newer than the client', DETAIL = newest::text;
END
$$;

-- In the database's time. What users see has its own columns, in the system's time. Rows of earlier versions have none.
ALTER TABLE tasks ADD COLUMN completed_at bigint;
ALTER TABLE archives ADD COLUMN sealed_at bigint;
ALTER TABLE watches ADD COLUMN added_at bigint;
DROP INDEX tasks_by_completion;
CREATE INDEX tasks_by_completion ON tasks (kind, COALESCE(completed_at, updated_at)) WHERE status = 'completed';

-- A check that a wrong clock has scheduled far in the future takes place now; it schedules the next one.
UPDATE watches SET due_at = 0 WHERE due_at > holdfast_now() + 86400000000;

-- Messages and archives have a checksum of their columns, so that damage is noticed when they are read.
ALTER TABLE messages ADD COLUMN checksum bigint;
ALTER TABLE archives ADD COLUMN checksum bigint;
ALTER TABLE archives ADD COLUMN summary_checksum bigint;

-- An earlier version that still runs would add messages without a checksum, which count as damaged later.
ALTER TABLE messages ADD CONSTRAINT messages_need_a_checksum CHECK (checksum IS NOT NULL) NOT VALID;

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
