-- A sealed stretch of a session. What it cost is counted as it is spent, whether the work succeeds or not.
-- What is counted stands before the texts: to add it up, those need not be read.
CREATE TABLE archives (
    account_id        TEXT NOT NULL,
    log_id            INTEGER NOT NULL,
    number            INTEGER NOT NULL,
    first_seq         INTEGER NOT NULL,
    last_seq          INTEGER NOT NULL,
    tokens            INTEGER NOT NULL,
    task_id           TEXT NOT NULL,
    state             TEXT NOT NULL,
    created_at        INTEGER NOT NULL,
    ended_at          INTEGER,
    prompt_tokens     INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    total_tokens      INTEGER NOT NULL DEFAULT 0,
    cached_tokens     INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens  INTEGER NOT NULL DEFAULT 0,
    embedding_tokens  INTEGER NOT NULL DEFAULT 0,
    overview_tokens   INTEGER NOT NULL DEFAULT 0,
    rolling_tokens    INTEGER NOT NULL DEFAULT 0,
    failure           TEXT,
    abstract          TEXT NOT NULL DEFAULT '',
    rolling_abstract  TEXT NOT NULL DEFAULT '',
    overview          TEXT NOT NULL DEFAULT '',
    rolling           TEXT NOT NULL DEFAULT '',
    summary           TEXT,
    earlier           TEXT,
    PRIMARY KEY (account_id, log_id, number)
) STRICT;

CREATE INDEX archives_open ON archives (account_id, log_id, state, number) WHERE state <> 'done';

-- Work to be done in the background. It can be taken from `run_at` on; who takes it sets that to the end of the lease.
-- Nothing is due that has none: what is finished, and what waits for the archive before it.
CREATE TABLE tasks (
    account_id  TEXT NOT NULL,
    task_id     TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    kind        TEXT NOT NULL,
    status      TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    log_id      INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    stage       TEXT,
    steps_done  INTEGER NOT NULL,
    steps_total INTEGER NOT NULL,
    run_at      INTEGER,
    fence       INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    failures    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    worked      INTEGER NOT NULL,
    result      TEXT,
    error_code  TEXT,
    error       TEXT,
    PRIMARY KEY (account_id, task_id)
) STRICT;

CREATE INDEX tasks_due ON tasks (run_at) WHERE run_at IS NOT NULL;
CREATE INDEX tasks_by_log ON tasks (account_id, log_id, number);
CREATE INDEX tasks_open ON tasks (account_id, user_id, status, task_id)
    WHERE status IN ('pending', 'running', 'failed');
CREATE INDEX tasks_completed ON tasks (updated_at) WHERE status = 'completed';

-- What a task has finished so far: its successor, after a crash, goes on from here.
CREATE TABLE steps (
    account_id TEXT NOT NULL,
    task_id    TEXT NOT NULL,
    step       TEXT NOT NULL,
    at         INTEGER NOT NULL,
    output     TEXT NOT NULL,
    PRIMARY KEY (account_id, task_id, step)
) STRICT, WITHOUT ROWID;

-- When to look again whether a session is to be committed without being asked.
CREATE TABLE watches (
    account_id TEXT NOT NULL,
    log_id     INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    PRIMARY KEY (account_id, log_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX watches_due ON watches (due_at);

-- Which messages speak of which tool call, so that an archive never ends between a call and its result.
CREATE TABLE calls (
    account_id TEXT NOT NULL,
    log_id     INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    tool_id    TEXT NOT NULL,
    is_open    INTEGER NOT NULL,
    PRIMARY KEY (account_id, log_id, seq, tool_id)
) STRICT, WITHOUT ROWID;

INSERT INTO calls (account_id, log_id, seq, tool_id, is_open)
SELECT m.account_id, m.log_id, m.seq, json_extract(p.value, '$.tool_id'),
       MIN(COALESCE(json_extract(p.value, '$.tool_status'), 'pending') IN ('pending', 'running')
           AND COALESCE(json_extract(p.value, '$.tool_output'), '') = '')
FROM messages m, json_each(m.parts) p
WHERE json_extract(p.value, '$.type') = 'tool' AND COALESCE(json_extract(p.value, '$.tool_id'), '') <> ''
GROUP BY 1, 2, 3, 4;
