-- Loses when items are to be forgotten: they stay until somebody deletes them. What has expired is deleted on the way.
DO $$ BEGIN PERFORM set_config('phronesis.tenant', '*', true); END $$;
DELETE FROM vectors USING items WHERE vectors.item_id = items.id AND items.expires_at <= now();
DELETE FROM items WHERE expires_at <= now();
DROP INDEX items_aging;
ALTER TABLE items DROP COLUMN expires_at;
