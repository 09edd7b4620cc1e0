-- depends: 0003-summaries

-- A transaction says whose rows it works on: a tenant's, or '*' for the platform's own work on those of all. Where it says
-- nothing there is no row, and none can be written. The setting is read once for a statement, and not for each row.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['audit', 'conversations', 'deletions', 'outbox', 'turns'] LOOP
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
ALTER TABLE journal ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_parent ON journal USING ((SELECT true FROM turns WHERE turns.id = journal.turn_id));
ALTER TABLE messages ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_parent ON messages USING ((SELECT true FROM conversations WHERE conversations.id = messages.conversation_id));
ALTER TABLE directives ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_parent ON directives USING ((SELECT true FROM conversations WHERE conversations.id = directives.conversation_id));
ALTER TABLE deletion_reports ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_parent ON deletion_reports USING ((SELECT true FROM deletions WHERE deletions.id = deletion_reports.deletion_id));

-- A row hangs on a row of its own tenant. The reference alone sees every tenant's rows, and would tell which ids there are.
CREATE POLICY on_own_parent ON turns AS RESTRICTIVE USING (true)
    WITH CHECK ((SELECT true FROM conversations WHERE conversations.id = turns.conversation_id));
CREATE POLICY on_own_parent ON deletions AS RESTRICTIVE USING (true)
    WITH CHECK ((SELECT true FROM conversations WHERE conversations.id = deletions.conversation_id));
