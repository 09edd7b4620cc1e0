-- Loses nothing: vectors of the other form of a text are still those of the same nodes.
ALTER TABLE constitution_nodes DROP COLUMN words;
