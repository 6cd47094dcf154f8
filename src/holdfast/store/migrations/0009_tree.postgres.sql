-- Files and folders that are stored: resources, skills, and other files of users. `root` is the place where a node is
-- mounted, such as `resources`; `path` is its path below the root, with the names encoded as in a URI, and `parent` the
-- path of its folder, or empty. What was removed keeps its row, so that it can be restored: all nodes that were removed
-- at once have the same `removal`.
CREATE TABLE nodes (
    account_id text NOT NULL,
    node_id    bigint NOT NULL,
    root       text COLLATE "C" NOT NULL,
    path       text COLLATE "C" NOT NULL,
    parent     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    is_folder  bigint NOT NULL,
    content_id bigint,
    created_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    removed_at bigint,
    removal    bigint,
    tags       text NOT NULL,
    meta       text NOT NULL,
    PRIMARY KEY (account_id, node_id)
);

CREATE UNIQUE INDEX nodes_by_path ON nodes (account_id, root, path) WHERE removed_at IS NULL;
CREATE INDEX nodes_by_name ON nodes (account_id, root, parent, name) WHERE removed_at IS NULL;
CREATE INDEX nodes_removed ON nodes (account_id, root, path, removed_at) WHERE removed_at IS NOT NULL;
CREATE INDEX nodes_by_removal ON nodes (account_id, removal) WHERE removal IS NOT NULL;
CREATE INDEX nodes_by_content ON nodes (account_id, content_id);

-- A transaction that changes a root raises its version first, so that changes of one root come one after the other.
CREATE TABLE tree_roots (
    account_id text NOT NULL,
    root       text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    PRIMARY KEY (account_id, root)
);

-- The contents of files, one row for each version, and of folders, whose only row has the version 0. `blob` is the hash
-- of the bytes. What processing makes of a file: the extracted text, if that is not the file itself, the outline of its
-- parts (JSON), an abstract and an overview.
CREATE TABLE contents (
    account_id text NOT NULL,
    content_id bigint NOT NULL,
    node_id    bigint NOT NULL,
    version    bigint NOT NULL,
    created_at bigint NOT NULL,
    author     text NOT NULL,
    change     text NOT NULL,
    blob       text,
    size       bigint NOT NULL,
    media_type text NOT NULL,
    state      text NOT NULL,
    text_blob  text,
    outline    text NOT NULL,
    abstract   text NOT NULL,
    overview   text NOT NULL,
    error      text,
    PRIMARY KEY (account_id, content_id)
);

CREATE UNIQUE INDEX contents_by_version ON contents (account_id, node_id, version);
CREATE INDEX contents_by_blob ON contents (account_id, blob);
CREATE INDEX contents_by_text ON contents (account_id, text_blob) WHERE text_blob IS NOT NULL;

-- Bytes by their hash, in chunks. An account stores the same bytes once.
CREATE TABLE file_blobs (
    account_id text NOT NULL,
    hash       text NOT NULL,
    size       bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (account_id, hash)
);

CREATE TABLE file_chunks (
    account_id text NOT NULL,
    hash       text NOT NULL,
    number     bigint NOT NULL,
    data       bytea NOT NULL,
    PRIMARY KEY (account_id, hash, number)
);

-- The bytes are often compressed already, or read in parts.
ALTER TABLE file_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

-- Files that clients upload to use them in another call. Until an upload is complete, its id is the hash of its chunks.
CREATE TABLE uploads (
    account_id text NOT NULL,
    upload_id  text NOT NULL,
    user_id    text NOT NULL,
    name       text COLLATE "C" NOT NULL,
    size       bigint NOT NULL,
    chunks     bigint NOT NULL,
    hash       text,
    expires_at bigint NOT NULL,
    PRIMARY KEY (account_id, upload_id)
);

CREATE INDEX uploads_expired ON uploads (expires_at);
CREATE INDEX uploads_by_hash ON uploads (account_id, hash);

-- The nodes to process, from `due_at` on, which is a time of the database's clock: files with a new content, and folders
-- with other children than before.
CREATE TABLE unprocessed (
    account_id text NOT NULL,
    node_id    bigint NOT NULL,
    due_at     bigint NOT NULL,
    PRIMARY KEY (account_id, node_id)
);

CREATE INDEX unprocessed_due ON unprocessed (due_at);
CREATE INDEX unprocessed_of_account ON unprocessed (account_id, due_at);

-- Documents of the parts of a file or folder: `number` is the number of the part, and 0 for the overview.
ALTER TABLE documents ADD COLUMN content_id bigint;
CREATE UNIQUE INDEX documents_by_content ON documents (account_id, content_id, number) WHERE content_id IS NOT NULL;
CREATE INDEX documents_with_content ON documents (account_id, owner_id, version) WHERE content_id IS NOT NULL;
ALTER TABLE documents DROP COLUMN uri;

-- Relations between addresses.
CREATE TABLE relations (
    account_id text NOT NULL,
    from_uri   text COLLATE "C" NOT NULL,
    to_uri     text COLLATE "C" NOT NULL,
    reason     text NOT NULL,
    author     text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (account_id, from_uri, to_uri)
);

CREATE INDEX relations_to ON relations (account_id, to_uri);

-- Resources that are read again at intervals. `next_at` is a time of the database's clock, `request` the JSON of what
-- was asked for.
CREATE TABLE resource_watches (
    account_id text NOT NULL,
    watch_id   text NOT NULL,
    owner_id   text NOT NULL,
    user_id    text NOT NULL,
    uri        text COLLATE "C" NOT NULL,
    source     text NOT NULL,
    request    text NOT NULL,
    interval_seconds bigint NOT NULL,
    is_active  bigint NOT NULL,
    created_at bigint NOT NULL,
    next_at    bigint NOT NULL,
    last_run_at bigint,
    last_task_id text,
    PRIMARY KEY (account_id, watch_id)
);

CREATE UNIQUE INDEX resource_watches_by_uri ON resource_watches (account_id, uri);
CREATE INDEX resource_watches_due ON resource_watches (next_at) WHERE is_active = 1;

-- How often a user called a skill, and how often it succeeded.
CREATE TABLE skill_uses (
    account_id   text NOT NULL,
    owner_id     text NOT NULL,
    uri          text COLLATE "C" NOT NULL,
    calls        bigint NOT NULL,
    successes    bigint NOT NULL,
    last_used_at bigint NOT NULL,
    PRIMARY KEY (account_id, owner_id, uri)
);

DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['nodes', 'tree_roots', 'contents', 'file_blobs', 'file_chunks', 'uploads', 'unprocessed',
        'relations', 'resource_watches', 'skill_uses']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format(
            'CREATE POLICY own_account ON %I USING (current_setting(''holdfast.account'', true) IN (account_id, ''*''))', t);
    END LOOP;
END $$;
