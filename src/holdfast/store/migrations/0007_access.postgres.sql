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
