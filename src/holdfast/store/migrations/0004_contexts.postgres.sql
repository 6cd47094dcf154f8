-- The latest system message stays in the context, however many messages came after it.
CREATE INDEX messages_of_system ON messages (account_id, log_id, seq) WHERE role = 'system';

-- What the standing rules take of an overview, and the numbers of the messages whose rules had no room.
ALTER TABLE archives ADD COLUMN rules_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE archives ADD COLUMN rules_left_out TEXT NOT NULL DEFAULT '[]';
