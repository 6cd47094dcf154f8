-- What a session was told about its own upkeep.
ALTER TABLE sessions ADD COLUMN config text NOT NULL DEFAULT '{}';

-- Results of appends are kept for a time, and the oldest go first.
ALTER TABLE appends ADD COLUMN at bigint NOT NULL DEFAULT 0;
UPDATE appends SET at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
CREATE INDEX appends_by_age ON appends (at);

CREATE TABLE users (
    account_id text NOT NULL REFERENCES accounts,
    user_id    text NOT NULL,
    role       text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (account_id, user_id)
);

-- A key names its account and its id; of the rest only the hash is kept.
CREATE TABLE keys (
    account_id   text NOT NULL,
    key_id       text NOT NULL,
    user_id      text NOT NULL,
    hash         text NOT NULL,
    created_at   bigint NOT NULL,
    expires_at   bigint,
    last_used_at bigint,
    PRIMARY KEY (account_id, key_id)
);

CREATE INDEX keys_by_user ON keys (account_id, user_id);

-- What happened to a session other than its messages: change `number` came behind message `after_seq`.
CREATE TABLE changes (
    account_id text NOT NULL,
    log_id     bigint NOT NULL,
    number     bigint NOT NULL,
    after_seq  bigint NOT NULL,
    kind       text NOT NULL,
    at         bigint NOT NULL,
    user_id    text NOT NULL,
    data       text NOT NULL,
    PRIMARY KEY (account_id, log_id, number)
);

DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['users', 'keys', 'changes']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format(
            'CREATE POLICY own_account ON %I USING (current_setting(''holdfast.account'', true) IN (account_id, ''*''))', t);
    END LOOP;
END $$;
