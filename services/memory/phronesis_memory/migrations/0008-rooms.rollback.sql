-- Loses no data. The version before has no tool that reads memories of scopes; they wait under their owners' names. It would tell
-- the graph their ids in `phronesis rebuild links`.
DROP POLICY of_its_room ON items;
