-- Loses where the texts came from that replies rest on, and what was attached to which message.
ALTER TABLE messages DROP COLUMN attached;
ALTER TABLE turns DROP COLUMN labels;
