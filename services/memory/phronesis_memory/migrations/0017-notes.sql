-- depends: 0016-unembedded

-- What a turn left behind in its user's own words is a note: it is quoted, and told apart from facts.
DO $$ BEGIN PERFORM set_config('phronesis.tenant', '*', true); END $$;
UPDATE facts SET kind = 'note'
WHERE predicate = 'noted' AND kind = 'fact'
AND EXISTS (SELECT FROM fact_sources WHERE fact_id = facts.id AND turn_id IS NOT NULL);
