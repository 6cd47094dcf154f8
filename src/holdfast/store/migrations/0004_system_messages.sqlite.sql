-- The latest system message stays in the context, however many messages came after it.
CREATE INDEX messages_of_system ON messages (account_id, log_id, seq) WHERE role = 'system';
