-- Loses the summaries of long conversations. The messages that they were made of are there.
ALTER TABLE conversations DROP COLUMN summary_through;
ALTER TABLE conversations DROP COLUMN summary;
