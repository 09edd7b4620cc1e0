-- Loses which conversations an item was learnt from (an episode keeps its own), and what may not come back with late news.
-- What was taken out of the kept results of writes stays out.
ALTER TABLE profiles DROP COLUMN version;
DROP TABLE tombstones;
DROP TABLE sources;
