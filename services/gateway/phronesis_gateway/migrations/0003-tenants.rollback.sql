-- Loses no data: every role that can read a table reads all of it again.
DROP POLICY of_the_tenant ON keys;
DROP POLICY of_the_tenant ON outbox;
ALTER TABLE keys NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY;
ALTER TABLE outbox NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY;
