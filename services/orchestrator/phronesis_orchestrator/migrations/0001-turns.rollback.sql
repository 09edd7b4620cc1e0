-- Loses every conversation, turn and audit entry, and news that was not sent.
DROP TABLE outbox;
DROP TABLE audit;
DROP TABLE revoked_keys;
DROP TABLE directives;
DROP TABLE messages;
DROP TABLE journal;
DROP TABLE turns;
DROP TABLE conversations;
