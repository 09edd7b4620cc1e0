-- depends: 0011-focus

-- The user of the key that acted for `who`.
ALTER TABLE audit ADD COLUMN acted_by text;
