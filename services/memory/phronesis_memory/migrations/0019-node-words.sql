-- depends: 0018-expiry

-- The words of a node, for searches by words beside those by vectors.
ALTER TABLE constitution_nodes ADD COLUMN words tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED;

-- The model is given a node's text in another form from now on: every vector is made anew, and serves until then. Without the
-- hash of what it was made from, the difference between the two forms is not taken for a drift of the node.
DO $$ BEGIN PERFORM set_config('phronesis.tenant', '*', true); END $$;
UPDATE constitution_nodes SET state = 'pending', due = now(), attempts = 0, problem = NULL, embedded_hash = NULL
WHERE embedded_hash IS NOT NULL;
