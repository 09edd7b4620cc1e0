-- depends: 0017-notes

-- When an item is to be forgotten. From then on nothing reads it, and a sweep deletes it.
ALTER TABLE items ADD COLUMN expires_at timestamptz;
CREATE INDEX items_expiring ON items (tenant, owner, expires_at) WHERE expires_at IS NOT NULL;

-- How old what a tenant keeps for some days alone is.
CREATE INDEX items_aging ON items (tenant, created_at) WHERE kind IN ('message', 'episode');
