-- depends: 0001-instructions

-- A transaction says whose rows it works on: a tenant's, or '*' for the platform's own work on those of all. Where it says
-- nothing there is no row, and none can be written. The setting is read once for a statement, and not for each row.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['outbox', 'writes'] LOOP
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
