-- The internal ids of users whose name has belonged to more than one user. Other users have their name as internal id.
-- Rows of sessions, grants and tasks have internal ids, so that a name that is given again opens nothing of before.
CREATE TABLE user_ids (
    account_id  text NOT NULL,
    internal_id text NOT NULL,
    user_id     text NOT NULL,
    removed_at  bigint,
    PRIMARY KEY (account_id, internal_id)
);

CREATE UNIQUE INDEX user_ids_by_name ON user_ids (account_id, user_id) WHERE removed_at IS NULL;

-- Who may do what with the session of a log, besides its owner. `user_id` is an internal id, or the id of a share link.
-- `owner_id` and `session_id` are the address of the session, so that the list of what a user can see needs no join.
-- `expires_at` is the system's time, for people. `valid_until` is the same in the database's time, which decides.
-- `rights` is a sum: 1 read, 2 write, 4 invoke. An empty `agent_id` means any agent.
CREATE TABLE grants (
    account_id  text NOT NULL,
    log_id      bigint NOT NULL,
    owner_id    text NOT NULL,
    session_id  text NOT NULL,
    user_id     text NOT NULL,
    agent_id    text NOT NULL,
    rights      bigint NOT NULL,
    granted_by  text NOT NULL,
    created_at  bigint NOT NULL,
    expires_at  bigint,
    valid_until bigint,
    PRIMARY KEY (account_id, user_id, log_id)
);

CREATE INDEX grants_by_log ON grants (account_id, log_id, user_id);
CREATE INDEX grants_by_owner ON grants (
    account_id, user_id, owner_id, log_id, session_id, agent_id, valid_until, rights
);

-- Each link has a grant. Of the link itself only the hash is kept.
CREATE TABLE share_links (
    account_id   text NOT NULL,
    link_id      text NOT NULL,
    log_id       bigint NOT NULL,
    hash         text NOT NULL,
    use_count    bigint NOT NULL,
    last_used_at bigint,
    PRIMARY KEY (account_id, link_id)
);

CREATE INDEX share_links_by_log ON share_links (account_id, log_id, link_id);

DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['user_ids', 'grants', 'share_links']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format(
            'CREATE POLICY own_account ON %I USING (current_setting(''holdfast.account'', true) IN (account_id, ''*''))', t);
    END LOOP;
END $$;

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
