-- Loses the keys of readers, for whom the gateway before has no word; of a key that may act as several agents all but one; and
-- that an owner is more than an administrator.
DELETE FROM keys WHERE access = 'reader';
ALTER TABLE keys DROP CONSTRAINT keys_have_their_rights;
ALTER TABLE keys DROP COLUMN agents;
ALTER TABLE keys DROP COLUMN access;
