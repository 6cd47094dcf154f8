-- Times that decide (when a task is due, a lease ends, a row is old) are times of the database's clock. It counts the
-- time that passes on this machine, and does not follow changes of the system clock. One row keeps it: the reading of
-- the machine's boot clock, and the database's time and the system's time at that reading.
CREATE TABLE clock (
    id          INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    boot_id     TEXT NOT NULL,
    boot_micros INTEGER NOT NULL,
    time        INTEGER NOT NULL,
    system_time INTEGER NOT NULL
) STRICT;

-- In the database's time. What users see has its own columns, in the system's time. Rows of earlier versions have none.
ALTER TABLE tasks ADD COLUMN completed_at INTEGER;
ALTER TABLE archives ADD COLUMN sealed_at INTEGER;
ALTER TABLE watches ADD COLUMN added_at INTEGER;
DROP INDEX tasks_by_completion;
CREATE INDEX tasks_by_completion ON tasks (kind, COALESCE(completed_at, updated_at)) WHERE status = 'completed';

-- A check that a wrong clock has scheduled far in the future takes place now; it schedules the next one.
UPDATE watches SET due_at = 0 WHERE due_at > CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 86400000000;

-- Messages and archives have a checksum of their columns, so that damage is noticed when they are read.
ALTER TABLE messages ADD COLUMN checksum INTEGER;
ALTER TABLE archives ADD COLUMN checksum INTEGER;
ALTER TABLE archives ADD COLUMN summary_checksum INTEGER;

-- An earlier version that still runs would add rows without a checksum, which count as damaged later.
CREATE TRIGGER messages_need_a_checksum BEFORE INSERT ON messages WHEN NEW.checksum IS NULL
BEGIN
    SELECT RAISE(ABORT, 'a newer version of Holdfast has upgraded this database; upgrade this one, too');
END;
CREATE TRIGGER archives_need_a_checksum BEFORE INSERT ON archives WHEN NEW.checksum IS NULL
BEGIN
    SELECT RAISE(ABORT, 'a newer version of Holdfast has upgraded this database; upgrade this one, too');
END;

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
