-- depends: 0018-patience

-- How a claim finds what waits without reading all of it: by tenant and user, those that were put back by themselves, each in
-- the order of the time by which it has its place; and what runs, to count it.
CREATE INDEX turns_queued_of_user ON turns (background, tenant, user_id, (wait IS NOT NULL),
    (CASE WHEN wait IS NULL THEN created_at ELSE lease_until END)) WHERE status = 'queued';
CREATE INDEX turns_queued_of_tenant ON turns (background, tenant, (wait IS NOT NULL),
    (CASE WHEN wait IS NULL THEN created_at ELSE lease_until END)) WHERE status = 'queued';
CREATE INDEX turns_running ON turns (tenant) WHERE status = 'running';
