-- depends: 0002-forgetting

-- Vectors of an item's passages: candidates that the items' own vectors or the words have found are looked at more closely.
-- Out of line and as they are, so that a scan over the items' vectors does not read them.
ALTER TABLE vectors ADD COLUMN passages halfvec[] NOT NULL DEFAULT '{}';
ALTER TABLE vectors ALTER COLUMN passages SET STORAGE EXTERNAL;
