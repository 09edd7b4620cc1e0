-- Loses the vectors of passages: candidates are looked at by their items' own alone. They are made again by remembering.
ALTER TABLE vectors DROP COLUMN passages;
