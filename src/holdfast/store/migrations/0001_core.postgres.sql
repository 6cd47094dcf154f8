CREATE TABLE accounts (
    account_id text NOT NULL PRIMARY KEY,
    created_at bigint NOT NULL
);

-- What grows with every message is read from the last one: an append does not touch its session.
CREATE TABLE sessions (
    account_id      text NOT NULL REFERENCES accounts,
    user_id         text NOT NULL,
    session_id      text NOT NULL,
    log_id          bigint NOT NULL,
    title           text NOT NULL,
    metadata        text NOT NULL,
    state           text NOT NULL,
    created_at      bigint NOT NULL,
    updated_at      bigint NOT NULL,
    live_from       bigint NOT NULL,
    tokens_archived bigint NOT NULL,
    forked_from     text,
    fork_seq        bigint NOT NULL,
    fork_tokens     bigint NOT NULL,
    fork_time       bigint,
    fork_added      bigint,
    PRIMARY KEY (account_id, user_id, session_id)
);

CREATE UNIQUE INDEX sessions_by_log ON sessions (account_id, log_id);
CREATE INDEX sessions_by_age ON sessions (account_id, user_id, log_id);

-- A fork owns only what was said after it; for the rest it points into the logs of its ancestors.
CREATE TABLE lineage (
    account_id text NOT NULL,
    log_id     bigint NOT NULL,
    first_seq  bigint NOT NULL,
    last_seq   bigint NOT NULL,
    base_id    bigint NOT NULL,
    PRIMARY KEY (account_id, log_id, first_seq)
);

CREATE INDEX lineage_by_base ON lineage (account_id, base_id);

CREATE TABLE messages (
    account_id     text NOT NULL,
    log_id         bigint NOT NULL,
    seq            bigint NOT NULL,
    id             text NOT NULL,
    id_given       smallint NOT NULL,
    role           text NOT NULL,
    parts          text NOT NULL,
    tokens         bigint NOT NULL,
    tokens_through bigint NOT NULL,
    author         text NOT NULL,
    created_at     bigint NOT NULL,
    added_at       bigint NOT NULL,
    extra          text,
    PRIMARY KEY (account_id, log_id, seq)
);

-- An id made here holds its seq, and is found by that.
CREATE UNIQUE INDEX messages_by_given_id ON messages (account_id, id, log_id) WHERE id_given = 1;

-- English stems but no stop words, as in the SQLite index: a search for "to be" finds it.
CREATE TEXT SEARCH DICTIONARY holdfast_stem (TEMPLATE = snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION holdfast_text (COPY = english);
ALTER TEXT SEARCH CONFIGURATION holdfast_text
    ALTER MAPPING FOR asciiword, word, asciihword, hword, hword_asciipart, hword_part WITH holdfast_stem;

CREATE TABLE message_text (
    account_id text NOT NULL,
    log_id     bigint NOT NULL,
    seq        bigint NOT NULL,
    words      tsvector NOT NULL,
    PRIMARY KEY (account_id, log_id, seq)
);

CREATE TABLE appends (
    account_id  text NOT NULL,
    log_id      bigint NOT NULL,
    key         text NOT NULL,
    fingerprint text NOT NULL,
    result      text NOT NULL,
    PRIMARY KEY (account_id, log_id, key)
);

-- Content is kept once per account, however many messages show it.
CREATE TABLE blobs (
    account_id text NOT NULL,
    hash       text NOT NULL,
    chars      bigint NOT NULL,
    refs       bigint NOT NULL,
    content    text NOT NULL,
    PRIMARY KEY (account_id, hash)
);

CREATE TABLE tool_results (
    account_id text NOT NULL,
    log_id     bigint NOT NULL,
    seq        bigint NOT NULL,
    part       bigint NOT NULL,
    hash       text NOT NULL,
    tool_id    text NOT NULL,
    tool_name  text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (account_id, log_id, seq, part)
);

CREATE INDEX tool_results_by_hash ON tool_results (account_id, log_id, hash);

CREATE TABLE usages (
    account_id text NOT NULL,
    log_id     bigint NOT NULL,
    id         text NOT NULL,
    kind       text NOT NULL,
    uri        text NOT NULL,
    detail     text,
    author     text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (account_id, log_id, id)
);

CREATE TABLE audit (
    account_id text NOT NULL,
    id         text NOT NULL,
    at         bigint NOT NULL,
    user_id    text NOT NULL,
    role       text NOT NULL,
    action     text NOT NULL,
    resource   text NOT NULL,
    PRIMARY KEY (account_id, id)
);

-- A second wall behind the WHERE: a statement that forgets its account sees nothing. The owner of the tables
-- is held to it as well; '*' is the operator's transaction, a name no account can have.
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['accounts', 'sessions', 'lineage', 'messages', 'message_text', 'appends',
                             'blobs', 'tool_results', 'usages', 'audit']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format(
            'CREATE POLICY own_account ON %I USING (current_setting(''holdfast.account'', true) IN (account_id, ''*''))', t);
    END LOOP;
END $$;
