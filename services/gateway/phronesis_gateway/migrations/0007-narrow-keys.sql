-- depends: 0006-sessions

-- The tools that a key may call; where it says nothing, all that its role and agents may. A key with tools, or one that ends,
-- stands under another hash: copies of the version before, which know of neither, do not find it.
ALTER TABLE keys ADD COLUMN tools text[];
CREATE INDEX keys_that_end ON keys (expires_at) WHERE NOT bus AND revoked_at IS NULL AND expires_at IS NOT NULL;
