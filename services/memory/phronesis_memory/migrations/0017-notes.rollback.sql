-- Loses which facts are notes: they are listed among the other facts again.
DO $$ BEGIN PERFORM set_config('phronesis.tenant', '*', true); END $$;
UPDATE facts SET kind = 'fact' WHERE kind = 'note';
