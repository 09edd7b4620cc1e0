ALTER TABLE conversations DROP COLUMN focus;
