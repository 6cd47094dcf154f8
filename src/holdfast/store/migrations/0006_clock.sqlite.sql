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
