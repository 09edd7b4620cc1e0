-- Loses which tasks speak for a strategy, what it needs, and that its user edited or retired it.
DROP TABLE strategy_evidence;
ALTER TABLE strategies DROP COLUMN edited_at;
ALTER TABLE strategies DROP COLUMN withdrawn;
ALTER TABLE strategies DROP COLUMN ontology;
ALTER TABLE strategies DROP COLUMN kind;
ALTER TABLE strategies DROP COLUMN agent;
