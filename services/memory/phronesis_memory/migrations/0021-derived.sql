-- depends: 0020-labels

-- The turn that made a write: the keys of what the orchestrator writes begin with its id. A column, since row level security lets
-- no index be searched by a function.
ALTER TABLE writes ADD COLUMN turn text GENERATED ALWAYS AS (split_part(key, '/', 1)) STORED;
CREATE INDEX writes_of_turn ON writes (tenant, service, turn);
