-- A sealed stretch of a session. What it cost is counted as it is spent, whether the work succeeds or not.
-- What is counted stands before the texts: to add it up, those need not be read.
CREATE TABLE archives (
    account_id        text NOT NULL,
    log_id            bigint NOT NULL,
    number            bigint NOT NULL,
    first_seq         bigint NOT NULL,
    last_seq          bigint NOT NULL,
    tokens            bigint NOT NULL,
    task_id           text NOT NULL,
    state             text NOT NULL,
    created_at        bigint NOT NULL,
    ended_at          bigint,
    prompt_tokens     bigint NOT NULL DEFAULT 0,
    completion_tokens bigint NOT NULL DEFAULT 0,
    total_tokens      bigint NOT NULL DEFAULT 0,
    cached_tokens     bigint NOT NULL DEFAULT 0,
    reasoning_tokens  bigint NOT NULL DEFAULT 0,
    embedding_tokens  bigint NOT NULL DEFAULT 0,
    overview_tokens   bigint NOT NULL DEFAULT 0,
    rolling_tokens    bigint NOT NULL DEFAULT 0,
    failure           text,
    abstract          text NOT NULL DEFAULT '',
    rolling_abstract  text NOT NULL DEFAULT '',
    overview          text NOT NULL DEFAULT '',
    rolling           text NOT NULL DEFAULT '',
    summary           text,
    earlier           text,
    PRIMARY KEY (account_id, log_id, number)
);

CREATE INDEX archives_open ON archives (account_id, log_id, state, number) WHERE state <> 'done';

-- Work to be done in the background. It can be taken from `run_at` on; who takes it sets that to the end of the lease.
-- Nothing is due that has none: what is finished, and what waits for the archive before it.
CREATE TABLE tasks (
    account_id  text NOT NULL,
    task_id     text NOT NULL,
    user_id     text NOT NULL,
    kind        text NOT NULL,
    status      text NOT NULL,
    resource_id text NOT NULL,
    log_id      bigint NOT NULL,
    number      bigint NOT NULL,
    stage       text,
    steps_done  bigint NOT NULL,
    steps_total bigint NOT NULL,
    run_at      bigint,
    fence       bigint NOT NULL,
    attempts    bigint NOT NULL,
    failures    bigint NOT NULL,
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    worked      bigint NOT NULL,
    result      text,
    error_code  text,
    error       text,
    PRIMARY KEY (account_id, task_id)
);

CREATE INDEX tasks_due ON tasks (run_at) WHERE run_at IS NOT NULL;
CREATE INDEX tasks_by_log ON tasks (account_id, log_id, number);
CREATE INDEX tasks_open ON tasks (account_id, user_id, status, task_id)
    WHERE status IN ('pending', 'running', 'failed');
CREATE INDEX tasks_completed ON tasks (updated_at) WHERE status = 'completed';

-- What a task has finished so far: its successor, after a crash, goes on from here.
CREATE TABLE steps (
    account_id text NOT NULL,
    task_id    text NOT NULL,
    step       text NOT NULL,
    at         bigint NOT NULL,
    output     text NOT NULL,
    PRIMARY KEY (account_id, task_id, step)
);

-- When to look again whether a session is to be committed without being asked.
CREATE TABLE watches (
    account_id text NOT NULL,
    log_id     bigint NOT NULL,
    due_at     bigint NOT NULL,
    PRIMARY KEY (account_id, log_id)
);

CREATE INDEX watches_due ON watches (due_at);

-- Which messages speak of which tool call, so that an archive never ends between a call and its result.
CREATE TABLE calls (
    account_id text NOT NULL,
    log_id     bigint NOT NULL,
    seq        bigint NOT NULL,
    tool_id    text NOT NULL,
    is_open    bigint NOT NULL,
    PRIMARY KEY (account_id, log_id, seq, tool_id)
);

INSERT INTO calls (account_id, log_id, seq, tool_id, is_open)
SELECT m.account_id, m.log_id, m.seq, p ->> 'tool_id',
       MIN((COALESCE(p ->> 'tool_status', 'pending') IN ('pending', 'running')
           AND COALESCE(p ->> 'tool_output', '') = '')::int)
FROM messages m, json_array_elements(m.parts::json) p
WHERE p ->> 'type' = 'tool' AND COALESCE(p ->> 'tool_id', '') <> ''
GROUP BY 1, 2, 3, 4;

DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['archives', 'tasks', 'steps', 'watches', 'calls']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format(
            'CREATE POLICY own_account ON %I USING (current_setting(''holdfast.account'', true) IN (account_id, ''*''))', t);
    END LOOP;
END $$;
