-- Loses of a key that may act as several agents all but one, that an owner is more than an administrator, and that a reader is one:
-- its key keeps the scope that lets it only read.
ALTER TABLE keys DROP CONSTRAINT keys_have_their_rights;
ALTER TABLE keys DROP COLUMN agents;
ALTER TABLE keys DROP COLUMN access;
