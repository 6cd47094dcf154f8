-- The internal ids of users whose name has belonged to more than one user. Other users have their name as internal id.
-- Rows of sessions, grants and tasks have internal ids, so that a name that is given again opens nothing of before.
CREATE TABLE user_ids (
    account_id  TEXT NOT NULL,
    internal_id TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    removed_at  INTEGER,
    PRIMARY KEY (account_id, internal_id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX user_ids_by_name ON user_ids (account_id, user_id) WHERE removed_at IS NULL;

-- Who may do what with the session of a log, besides its owner. `user_id` is an internal id, or the id of a share link.
-- `owner_id` and `session_id` are the address of the session, so that the list of what a user can see needs no join.
-- `expires_at` is the system's time, for people. `valid_until` is the same in the database's time, which decides.
-- `rights` is a sum: 1 read, 2 write, 4 invoke. An empty `agent_id` means any agent.
CREATE TABLE grants (
    account_id  TEXT NOT NULL,
    log_id      INTEGER NOT NULL,
    owner_id    TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    rights      INTEGER NOT NULL,
    granted_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    valid_until INTEGER,
    PRIMARY KEY (account_id, user_id, log_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX grants_by_log ON grants (account_id, log_id, user_id);
CREATE INDEX grants_by_owner ON grants (
    account_id, user_id, owner_id, log_id, session_id, agent_id, valid_until, rights
);

-- Each link has a grant. Of the link itself only the hash is kept.
CREATE TABLE share_links (
    account_id   TEXT NOT NULL,
    link_id      TEXT NOT NULL,
    log_id       INTEGER NOT NULL,
    hash         TEXT NOT NULL,
    use_count    INTEGER NOT NULL,
    last_used_at INTEGER,
    PRIMARY KEY (account_id, link_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX share_links_by_log ON share_links (account_id, log_id, link_id);

-- Audit lines form a chain per account. A line that is not in the chain yet is in `audit_unsealed`: on SQLite only the
-- lines of earlier versions, which have no salt and no digest until they are sealed.
ALTER TABLE audit RENAME TO audit_unsealed;
ALTER TABLE audit_unsealed ADD COLUMN agent_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_unsealed ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_unsealed ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_unsealed ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_unsealed ADD COLUMN outcome TEXT NOT NULL DEFAULT 'done';
ALTER TABLE audit_unsealed ADD COLUMN salt TEXT;
ALTER TABLE audit_unsealed ADD COLUMN digest TEXT;

-- The sealed lines. An erased line keeps its number, id, digest and link.
CREATE TABLE audit (
    account_id TEXT NOT NULL,
    number     INTEGER NOT NULL,
    id         TEXT NOT NULL,
    at         INTEGER NOT NULL,
    user_id    TEXT NOT NULL,
    role       TEXT NOT NULL,
    action     TEXT NOT NULL,
    resource   TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    address    TEXT NOT NULL,
    key_id     TEXT NOT NULL,
    version    TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    salt       TEXT NOT NULL,
    digest     TEXT NOT NULL,
    link       TEXT NOT NULL,
    erased_at  INTEGER,
    PRIMARY KEY (account_id, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX audit_by_id ON audit (account_id, id);
CREATE INDEX audit_by_user ON audit (account_id, user_id, id);
CREATE INDEX audit_by_resource ON audit (account_id, resource, id);
CREATE INDEX audit_denied ON audit (account_id, id) WHERE outcome = 'denied';

-- The last line of each chain, and the last line that retention has removed.
CREATE TABLE audit_heads (
    account_id    TEXT NOT NULL PRIMARY KEY,
    number        INTEGER NOT NULL,
    link          TEXT NOT NULL,
    pruned_number INTEGER NOT NULL DEFAULT 0,
    pruned_link   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
