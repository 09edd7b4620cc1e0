-- Loses no data: every role that can read a table reads all of it again.
DROP POLICY of_the_tenant ON outbox;
DROP POLICY of_the_tenant ON writes;
ALTER TABLE outbox NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY;
ALTER TABLE writes NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY;
