CREATE TABLE accounts (
    account_id TEXT NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What grows with every message is read from the last one: an append does not touch its session.
CREATE TABLE sessions (
    account_id      TEXT NOT NULL REFERENCES accounts,
    user_id         TEXT NOT NULL,
    session_id      TEXT NOT NULL,
    log_id          INTEGER NOT NULL,
    title           TEXT NOT NULL,
    metadata        TEXT NOT NULL,
    state           TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    live_from       INTEGER NOT NULL,
    tokens_archived INTEGER NOT NULL,
    forked_from     TEXT,
    fork_seq        INTEGER NOT NULL,
    fork_tokens     INTEGER NOT NULL,
    fork_time       INTEGER,
    fork_added      INTEGER,
    PRIMARY KEY (account_id, user_id, session_id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX sessions_by_log ON sessions (account_id, log_id);
CREATE INDEX sessions_by_age ON sessions (account_id, user_id, log_id);

-- A fork owns only what was said after it; for the rest it points into the logs of its ancestors.
CREATE TABLE lineage (
    account_id TEXT NOT NULL,
    log_id     INTEGER NOT NULL,
    first_seq  INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,
    base_id    INTEGER NOT NULL,
    PRIMARY KEY (account_id, log_id, first_seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX lineage_by_base ON lineage (account_id, base_id);

CREATE TABLE messages (
    n              INTEGER PRIMARY KEY,
    account_id     TEXT NOT NULL,
    log_id         INTEGER NOT NULL,
    seq            INTEGER NOT NULL,
    id             TEXT NOT NULL,
    id_given       INTEGER NOT NULL,
    role           TEXT NOT NULL,
    parts          TEXT NOT NULL,
    tokens         INTEGER NOT NULL,
    tokens_through INTEGER NOT NULL,
    author         TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    added_at       INTEGER NOT NULL,
    extra          TEXT
) STRICT;

CREATE UNIQUE INDEX messages_by_seq ON messages (account_id, log_id, seq);
-- An id made here holds its seq, and is found by that.
CREATE UNIQUE INDEX messages_by_given_id ON messages (account_id, id, log_id) WHERE id_given = 1;

CREATE VIRTUAL TABLE message_text USING fts5 (
    scope, text, content = '', contentless_delete = 1, tokenize = 'porter unicode61'
);
-- To index messages one by one would write more pages than all the rest; a search reads those that wait itself.
CREATE TRIGGER messages_wait AFTER INSERT ON messages WHEN new.n % 64 = 0
BEGIN
    INSERT INTO message_text (rowid, scope, text)
        SELECT n, 'a' || hex(account_id), indexed_text(parts) FROM messages
        WHERE n > (SELECT COALESCE(MAX(id), 0) FROM message_text_docsize) ORDER BY n;
END;

CREATE TABLE appends (
    account_id  TEXT NOT NULL,
    log_id      INTEGER NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    result      TEXT NOT NULL,
    PRIMARY KEY (account_id, log_id, key)
) STRICT, WITHOUT ROWID;

-- Content is kept once per account, however many messages show it.
CREATE TABLE blobs (
    account_id TEXT NOT NULL,
    hash       TEXT NOT NULL,
    chars      INTEGER NOT NULL,
    refs       INTEGER NOT NULL,
    content    TEXT NOT NULL,
    PRIMARY KEY (account_id, hash)
) STRICT;

CREATE TABLE tool_results (
    account_id TEXT NOT NULL,
    log_id     INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    part       INTEGER NOT NULL,
    hash       TEXT NOT NULL,
    tool_id    TEXT NOT NULL,
    tool_name  TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, log_id, seq, part)
) STRICT, WITHOUT ROWID;

CREATE INDEX tool_results_by_hash ON tool_results (account_id, log_id, hash);

CREATE TABLE usages (
    account_id TEXT NOT NULL,
    log_id     INTEGER NOT NULL,
    id         TEXT NOT NULL,
    kind       TEXT NOT NULL,
    uri        TEXT NOT NULL,
    detail     TEXT,
    author     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, log_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    account_id TEXT NOT NULL,
    id         TEXT NOT NULL,
    at         INTEGER NOT NULL,
    user_id    TEXT NOT NULL,
    role       TEXT NOT NULL,
    action     TEXT NOT NULL,
    resource   TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
