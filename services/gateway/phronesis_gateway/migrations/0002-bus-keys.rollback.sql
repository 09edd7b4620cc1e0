-- Loses the keys of outside systems, which the gateway before would take for its own, and when keys end.
DELETE FROM keys WHERE bus;
DROP INDEX revoked_keys_of_the_bus;
ALTER TABLE keys DROP CONSTRAINT keys_of_the_bus_end;
ALTER TABLE keys DROP COLUMN expires_at;
ALTER TABLE keys DROP COLUMN bus;
