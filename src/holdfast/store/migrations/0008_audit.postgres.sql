-- Audit lines form a chain per account. A line that is not in the chain yet is in `audit_unsealed`. Lines of earlier
-- versions have no salt and no digest until they are sealed.
ALTER TABLE audit RENAME TO audit_unsealed;
ALTER TABLE audit_unsealed ADD COLUMN agent_id text NOT NULL DEFAULT '';
ALTER TABLE audit_unsealed ADD COLUMN address text NOT NULL DEFAULT '';
ALTER TABLE audit_unsealed ADD COLUMN key_id text NOT NULL DEFAULT '';
ALTER TABLE audit_unsealed ADD COLUMN version text NOT NULL DEFAULT '';
ALTER TABLE audit_unsealed ADD COLUMN outcome text NOT NULL DEFAULT 'done';
ALTER TABLE audit_unsealed ADD COLUMN salt text;
ALTER TABLE audit_unsealed ADD COLUMN digest text;

-- The sealed lines. An erased line keeps its number, id, digest and link.
CREATE TABLE audit (
    account_id text NOT NULL,
    number     bigint NOT NULL,
    id         text COLLATE "C" NOT NULL,
    at         bigint NOT NULL,
    user_id    text NOT NULL,
    role       text NOT NULL,
    action     text NOT NULL,
    resource   text COLLATE "C" NOT NULL,
    agent_id   text NOT NULL,
    address    text NOT NULL,
    key_id     text NOT NULL,
    version    text NOT NULL,
    outcome    text NOT NULL,
    salt       text NOT NULL,
    digest     text NOT NULL,
    link       text NOT NULL,
    erased_at  bigint,
    PRIMARY KEY (account_id, number)
);

CREATE UNIQUE INDEX audit_by_id ON audit (account_id, id);
CREATE INDEX audit_by_user ON audit (account_id, user_id, id);
CREATE INDEX audit_by_action ON audit (account_id, action, id);
CREATE INDEX audit_by_resource ON audit (account_id, resource, id);
CREATE INDEX audit_denied ON audit (account_id, id) WHERE outcome = 'denied';

-- The last line of each chain, and the last line that retention has removed.
CREATE TABLE audit_heads (
    account_id    text NOT NULL PRIMARY KEY,
    number        bigint NOT NULL,
    link          text NOT NULL,
    pruned_number bigint NOT NULL DEFAULT 0,
    pruned_link   text NOT NULL
);

ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit FORCE ROW LEVEL SECURITY;
CREATE POLICY own_account ON audit USING (current_setting('holdfast.account', true) IN (account_id, '*'));
ALTER TABLE audit_heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_heads FORCE ROW LEVEL SECURITY;
CREATE POLICY own_account ON audit_heads USING (current_setting('holdfast.account', true) IN (account_id, '*'));
