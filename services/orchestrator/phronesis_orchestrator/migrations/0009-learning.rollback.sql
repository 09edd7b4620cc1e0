-- Loses which turns were learnt from, and what memory put before each.
DROP INDEX turns_unlearnt;
ALTER TABLE turns DROP COLUMN recalled;
ALTER TABLE turns DROP COLUMN learn_attempts;
ALTER TABLE turns DROP COLUMN learn_after;
ALTER TABLE turns DROP COLUMN learnt;
