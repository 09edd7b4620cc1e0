-- Loses the reports of deletions, and removes deleted conversations for good, with their turns: the service before would
-- show them again, and a repeat of such a turn is a new one.
DROP TABLE deletion_reports;
DROP TABLE deletions;
DELETE FROM conversations WHERE deleted_at IS NOT NULL;
DELETE FROM turns WHERE erased;
ALTER TABLE turns DROP COLUMN erased;
CREATE INDEX conversations_of_user ON conversations (tenant, user_id, updated_at DESC);
DROP INDEX conversations_listed;
ALTER TABLE conversations DROP COLUMN deleted_at;
