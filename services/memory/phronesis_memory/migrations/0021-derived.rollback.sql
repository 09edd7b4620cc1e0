-- Loses no data: what a turn wrote is looked up by nothing before.
DROP INDEX writes_of_turn;
ALTER TABLE writes DROP COLUMN turn;
