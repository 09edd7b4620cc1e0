-- Loses what conversations were about: a follow-up right after going back is not understood.
ALTER TABLE conversations DROP COLUMN focus;
