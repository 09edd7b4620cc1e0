-- Loses which facts are notes: they are listed among the other facts again.
SELECT set_config('phronesis.tenant', '*', true);
UPDATE facts SET kind = 'fact' WHERE kind = 'note';
