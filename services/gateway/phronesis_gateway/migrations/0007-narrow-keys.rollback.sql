-- Loses the keys of the API that may call some tools alone or that end: to the gateway before they would be wider than they are.
DELETE FROM keys WHERE tools IS NOT NULL OR (NOT bus AND expires_at IS NOT NULL);
DROP INDEX keys_that_end;
ALTER TABLE keys DROP COLUMN tools;
