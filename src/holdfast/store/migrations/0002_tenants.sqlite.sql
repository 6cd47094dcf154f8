-- What a session was told about its own upkeep.
ALTER TABLE sessions ADD COLUMN config TEXT NOT NULL DEFAULT '{}';

-- Results of appends are kept for a time, and the oldest go first.
ALTER TABLE appends ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
UPDATE appends SET at = CAST(unixepoch('subsec') * 1000000 AS INTEGER);
CREATE INDEX appends_by_age ON appends (at);

CREATE TABLE users (
    account_id TEXT NOT NULL REFERENCES accounts,
    user_id    TEXT NOT NULL,
    role       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, user_id)
) STRICT, WITHOUT ROWID;

-- A key names its account and its id; of the rest only the hash is kept.
CREATE TABLE keys (
    account_id   TEXT NOT NULL,
    key_id       TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    hash         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    PRIMARY KEY (account_id, key_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_by_user ON keys (account_id, user_id);

-- What happened to a session other than its messages: change `number` came behind message `after_seq`.
CREATE TABLE changes (
    account_id TEXT NOT NULL,
    log_id     INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    after_seq  INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    at         INTEGER NOT NULL,
    user_id    TEXT NOT NULL,
    data       TEXT NOT NULL,
    PRIMARY KEY (account_id, log_id, number)
) STRICT, WITHOUT ROWID;
