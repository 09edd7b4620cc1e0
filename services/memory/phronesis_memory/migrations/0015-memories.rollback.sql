-- Loses the messages of conversations, and what items said before they were changed.
DELETE FROM vectors WHERE kind = 'message';
DELETE FROM items WHERE kind = 'message';
DELETE FROM scopes WHERE kind = 'message';
DROP TABLE item_versions;
DROP INDEX items_by_time;
DROP INDEX items_of_conversation;
ALTER TABLE items DROP COLUMN said_in, DROP COLUMN position, DROP COLUMN occurred_at;
