-- Files and folders that are stored: resources, skills, and other files of users. `root` is the place where a node is
-- mounted, such as `resources`; `path` is its path below the root, with the names encoded as in a URI, and `parent` the
-- path of its folder, or empty. What was removed keeps its row, so that it can be restored: all nodes that were removed
-- at once have the same `removal`.
CREATE TABLE nodes (
    account_id TEXT NOT NULL,
    node_id    INTEGER NOT NULL,
    root       TEXT NOT NULL,
    path       TEXT NOT NULL,
    parent     TEXT NOT NULL,
    name       TEXT NOT NULL,
    is_folder  INTEGER NOT NULL,
    content_id INTEGER,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    removed_at INTEGER,
    removal    INTEGER,
    tags       TEXT NOT NULL,
    meta       TEXT NOT NULL,
    PRIMARY KEY (account_id, node_id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX nodes_by_path ON nodes (account_id, root, path) WHERE removed_at IS NULL;
CREATE INDEX nodes_by_name ON nodes (account_id, root, parent, name) WHERE removed_at IS NULL;
CREATE INDEX nodes_removed ON nodes (account_id, root, path, removed_at) WHERE removed_at IS NOT NULL;
CREATE INDEX nodes_by_removal ON nodes (account_id, removal) WHERE removal IS NOT NULL;
CREATE INDEX nodes_by_content ON nodes (account_id, content_id);

-- A transaction that changes a root raises its version first, so that changes of one root come one after the other.
CREATE TABLE tree_roots (
    account_id TEXT NOT NULL,
    root       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    PRIMARY KEY (account_id, root)
) STRICT, WITHOUT ROWID;

-- The contents of files, one row for each version, and of folders, whose only row has the version 0. `blob` is the hash
-- of the bytes. What processing makes of a file: the extracted text, if that is not the file itself, the outline of its
-- parts (JSON), an abstract and an overview.
CREATE TABLE contents (
    account_id TEXT NOT NULL,
    content_id INTEGER NOT NULL,
    node_id    INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    author     TEXT NOT NULL,
    change     TEXT NOT NULL,
    blob       TEXT,
    size       INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    state      TEXT NOT NULL,
    text_blob  TEXT,
    outline    TEXT NOT NULL,
    abstract   TEXT NOT NULL,
    overview   TEXT NOT NULL,
    error      TEXT,
    PRIMARY KEY (account_id, content_id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX contents_by_version ON contents (account_id, node_id, version);
CREATE INDEX contents_by_blob ON contents (account_id, blob);
CREATE INDEX contents_by_text ON contents (account_id, text_blob) WHERE text_blob IS NOT NULL;

-- Bytes by their hash, in chunks. An account stores the same bytes once.
CREATE TABLE file_blobs (
    account_id TEXT NOT NULL,
    hash       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE file_chunks (
    id         INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL,
    hash       TEXT NOT NULL,
    number     INTEGER NOT NULL,
    data       BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX file_chunks_by_number ON file_chunks (account_id, hash, number);

-- Files that clients upload to use them in another call. Until an upload is complete, its id is the hash of its chunks.
CREATE TABLE uploads (
    account_id TEXT NOT NULL,
    upload_id  TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    name       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    chunks     INTEGER NOT NULL,
    hash       TEXT,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, upload_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX uploads_expired ON uploads (expires_at);
CREATE INDEX uploads_by_hash ON uploads (account_id, hash);

-- The nodes to process, from `due_at` on, which is a time of the database's clock: files with a new content, and folders
-- with other children than before.
CREATE TABLE unprocessed (
    account_id TEXT NOT NULL,
    node_id    INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    PRIMARY KEY (account_id, node_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX unprocessed_due ON unprocessed (due_at);
CREATE INDEX unprocessed_of_account ON unprocessed (account_id, due_at);

-- Documents of the parts of a file or folder: `number` is the number of the part, and 0 for the overview.
ALTER TABLE documents ADD COLUMN content_id INTEGER;
CREATE UNIQUE INDEX documents_by_content ON documents (account_id, content_id, number) WHERE content_id IS NOT NULL;
CREATE INDEX documents_with_content ON documents (account_id, owner_id, version) WHERE content_id IS NOT NULL;
ALTER TABLE documents DROP COLUMN uri;

-- Relations between addresses.
CREATE TABLE relations (
    account_id TEXT NOT NULL,
    from_uri   TEXT NOT NULL,
    to_uri     TEXT NOT NULL,
    reason     TEXT NOT NULL,
    author     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, from_uri, to_uri)
) STRICT, WITHOUT ROWID;

CREATE INDEX relations_to ON relations (account_id, to_uri);

-- Resources that are read again at intervals. `next_at` is a time of the database's clock, `request` the JSON of what
-- was asked for.
CREATE TABLE resource_watches (
    account_id TEXT NOT NULL,
    watch_id   TEXT NOT NULL,
    owner_id   TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    uri        TEXT NOT NULL,
    source     TEXT NOT NULL,
    request    TEXT NOT NULL,
    interval_seconds INTEGER NOT NULL,
    is_active  INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    next_at    INTEGER NOT NULL,
    last_run_at INTEGER,
    last_task_id TEXT,
    PRIMARY KEY (account_id, watch_id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX resource_watches_by_uri ON resource_watches (account_id, uri);
CREATE INDEX resource_watches_due ON resource_watches (next_at) WHERE is_active = 1;

-- How often a user called a skill, and how often it succeeded.
CREATE TABLE skill_uses (
    account_id   TEXT NOT NULL,
    owner_id     TEXT NOT NULL,
    uri          TEXT NOT NULL,
    calls        INTEGER NOT NULL,
    successes    INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, owner_id, uri)
) STRICT, WITHOUT ROWID;
