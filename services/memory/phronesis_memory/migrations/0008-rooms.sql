-- depends: 0007-links

-- A memory of a scope is an item whose owner is a room, `scope:...`, which is nobody's name. It is seen and written only where
-- the transaction says that room too: a statement that forgets its owner still reaches no room.
CREATE POLICY of_its_room ON items AS RESTRICTIVE USING (
    NOT starts_with(owner, 'scope:')
    OR owner = (SELECT current_setting('phronesis.room', true))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
