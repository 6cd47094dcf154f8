-- What can be searched: messages and overviews, and later other kinds. `log_id` and `number` name a message or an archive.
-- `words` are the terms that a search ranks, `dates` the periods that the text names, as days since 1970. `owner_id` is
-- an internal id, or `-` if the session of the log is deleted and only forks share its messages.
CREATE TABLE documents (
    n          INTEGER PRIMARY KEY AUTOINCREMENT, -- a number is never given again: caches know documents by it
    account_id TEXT NOT NULL,
    owner_id   TEXT NOT NULL,
    kind       TEXT NOT NULL,
    log_id     INTEGER,
    number     INTEGER NOT NULL,
    level      INTEGER NOT NULL,
    role       TEXT NOT NULL,
    speaker    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    flags      INTEGER NOT NULL,
    word_count INTEGER NOT NULL,
    uri        TEXT,
    dates      TEXT NOT NULL,
    tags       TEXT NOT NULL,
    words      TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX documents_by_number ON documents (account_id, log_id, kind, number);
CREATE INDEX documents_by_version ON documents (account_id, owner_id, version);

-- The text index. It lacks the messages that are still pending; a search reads those itself. No positions are stored.
-- `scope` has the account, owner, log and kind of a document as terms.
DROP TRIGGER messages_wait;
DROP TABLE message_text;
CREATE VIRTUAL TABLE document_text USING fts5 (
    scope, text, content = '', contentless_delete = 1, tokenize = 'porter unicode61', detail = 'column'
);
-- A deletion never rewrites a segment of the index: that takes a second for 60,000 messages.
INSERT INTO document_text (document_text, rank) VALUES ('deletemerge', 0);

-- The vectors of documents, as little-endian float16. `space` names the embedder: two spaces are never compared.
CREATE TABLE vectors (
    account_id TEXT NOT NULL,
    owner_id   TEXT NOT NULL,
    space      TEXT NOT NULL,
    n          INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    vector     BLOB NOT NULL,
    PRIMARY KEY (account_id, owner_id, space, n)
) STRICT, WITHOUT ROWID;

CREATE INDEX vectors_by_version ON vectors (account_id, owner_id, space, version);

-- Which space of vectors a search of the account uses, and the one that is being filled to replace it.
CREATE TABLE vector_spaces (
    account_id TEXT NOT NULL PRIMARY KEY,
    space      TEXT NOT NULL,
    next_space TEXT
) STRICT, WITHOUT ROWID;

-- The owners of documents that may have no vector yet, to be embedded from `due_at` on, by the database's clock.
CREATE TABLE unembedded (
    account_id TEXT NOT NULL,
    owner_id   TEXT NOT NULL,
    due_at     INTEGER NOT NULL,
    PRIMARY KEY (account_id, owner_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX unembedded_due ON unembedded (due_at);

-- How far the vectors of an owner are complete: up to the document with this version and number, in their order.
CREATE TABLE embedded (
    account_id TEXT NOT NULL,
    owner_id   TEXT NOT NULL,
    space      TEXT NOT NULL,
    version    INTEGER NOT NULL,
    n          INTEGER NOT NULL,
    PRIMARY KEY (account_id, owner_id, space)
) STRICT, WITHOUT ROWID;

-- The owners whose vectors up to a version are also in an index that is made for their space, on PostgreSQL.
CREATE TABLE indexed_vectors (
    account_id TEXT NOT NULL,
    owner_id   TEXT NOT NULL,
    space      TEXT NOT NULL,
    version    INTEGER NOT NULL,
    PRIMARY KEY (account_id, owner_id, space)
) STRICT, WITHOUT ROWID;

-- A transaction that adds or removes documents or vectors of an owner raises `version` first and stamps its rows with it.
-- The row is locked until it commits, so versions are in the order of commits. `removed_version` is that of the last
-- removal. `documents` and `words` count what the owner's documents have.
CREATE TABLE index_owners (
    account_id      TEXT NOT NULL,
    owner_id        TEXT NOT NULL,
    version         INTEGER NOT NULL,
    removed_version INTEGER NOT NULL,
    documents       INTEGER NOT NULL,
    words           INTEGER NOT NULL,
    PRIMARY KEY (account_id, owner_id)
) STRICT, WITHOUT ROWID;

-- The logs that have something to index, from `due_at` on, which is a time of the database's clock. If `is_stale` is 1,
-- the documents of the log are not valid any more: its session was deleted or has another owner.
CREATE TABLE unindexed (
    account_id TEXT NOT NULL,
    log_id     INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    is_stale   INTEGER NOT NULL,
    PRIMARY KEY (account_id, log_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX unindexed_due ON unindexed (due_at);
CREATE INDEX unindexed_of_account ON unindexed (account_id, due_at);
CREATE INDEX unindexed_stale ON unindexed (account_id, log_id) WHERE is_stale = 1;

-- Messages of the session's own log up to here are in `documents`.
ALTER TABLE sessions ADD COLUMN indexed_seq INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET indexed_seq = fork_seq WHERE fork_seq > 0;
CREATE INDEX sessions_of_forks ON sessions (account_id, user_id, log_id) WHERE fork_seq > 0;

-- How often and when a user has used the document of an address.
CREATE TABLE document_uses (
    account_id   TEXT NOT NULL,
    owner_id     TEXT NOT NULL,
    uri          TEXT NOT NULL,
    active_count INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, owner_id, uri)
) STRICT, WITHOUT ROWID;

-- Everything of earlier versions is still to index, in the background: messages and overviews of sessions, and messages
-- that only forks share.
INSERT INTO unindexed (account_id, log_id, due_at, is_stale)
SELECT s.account_id, s.log_id, 0, 0 FROM sessions s
WHERE EXISTS (SELECT 1 FROM messages m WHERE m.account_id = s.account_id AND m.log_id = s.log_id)
    OR EXISTS (SELECT 1 FROM archives a WHERE a.account_id = s.account_id AND a.log_id = s.log_id)
UNION
SELECT l.account_id, l.base_id, 0, 0 FROM lineage l;
