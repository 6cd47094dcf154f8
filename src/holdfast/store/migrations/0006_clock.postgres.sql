-- Times that decide (when a task is due, a lease ends, a row is old) are times of the database's clock, which is the
-- clock of the server. No client's clock decides anything.
CREATE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

-- Every write of a client calls this first. A client that knows only earlier schemas must not write.
CREATE FUNCTION holdfast_require_schema(known bigint) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    newest bigint;
BEGIN
    SELECT max(number) INTO newest FROM schema_migrations;
    IF newest > known THEN
        RAISE EXCEPTION USING ERRCODE = 'HF001', MESSAGE = 'the schema is newer than the client', DETAIL = newest::text;
    END IF;
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
