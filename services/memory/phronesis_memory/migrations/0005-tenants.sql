-- depends: 0003-passages

-- A transaction says whose rows it works on: a tenant's, or '*' for the platform's own work on those of all. Where it says
-- nothing there is no row, and none can be written. The setting is read once for a statement, and not for each row.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['items', 'nodes', 'outbox', 'profiles', 'scopes', 'texts', 'tombstones', 'vectors', 'writes'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$
            CREATE POLICY of_the_tenant ON %I USING (
                tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
                OR (SELECT current_setting('phronesis.tenant', true)) = '*'
            )
        $policy$, name);
    END LOOP;
END
$$;

-- Tables without a tenant of their own: a row is as visible as the row that it hangs on. Looked up by key, row by row: as
-- EXISTS it could become a scan of all parents.
ALTER TABLE sources ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_parent ON sources USING ((SELECT true FROM items WHERE items.id = sources.item_id));

-- A row hangs on a row of its own tenant. The reference alone sees every tenant's rows, and would tell which ids there are.
CREATE POLICY on_own_parent ON texts AS RESTRICTIVE USING (true)
    WITH CHECK ((SELECT true FROM items WHERE items.id = texts.item_id));
