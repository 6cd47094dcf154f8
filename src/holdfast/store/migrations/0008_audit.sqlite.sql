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
CREATE INDEX audit_by_action ON audit (account_id, action, id);
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
