-- Loses what turns wait for. They are tried again all the same: the service before claims them when their time has come.
ALTER TABLE turns DROP COLUMN waited_seconds;
ALTER TABLE turns DROP COLUMN wait;
