-- depends: 0007-ledger

-- The keys of writes that came with one, and what the first of them gave.
CREATE TABLE IF NOT EXISTS writes (
    tenant text NOT NULL,
    service text NOT NULL,
    key text NOT NULL,
    arguments text NOT NULL,
    result jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, service, key)
);
ALTER TABLE writes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS of_the_tenant ON writes;
CREATE POLICY of_the_tenant ON writes USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);

-- Outside MCP servers of a tenant. The headers' values are encrypted by the service; the database never sees them.
CREATE TABLE outside_servers (
    tenant text NOT NULL,
    name text NOT NULL,
    url text,
    command text[],
    header_names text[] NOT NULL DEFAULT '{}',
    sealed bytea,
    seconds double precision NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    version bigint NOT NULL DEFAULT 1,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, name),
    CHECK ((url IS NULL) <> (command IS NULL))
);

-- Tools of theirs as they were accepted: what a model is told, and what calls are held to.
CREATE TABLE outside_tools (
    tenant text NOT NULL,
    server text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    parameters jsonb NOT NULL,
    pin text NOT NULL,
    risk int NOT NULL,
    idempotent boolean NOT NULL,
    accepted_by text NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, server, name),
    FOREIGN KEY (tenant, server) REFERENCES outside_servers (tenant, name) ON DELETE CASCADE
);
ALTER TABLE outside_servers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON outside_servers USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
ALTER TABLE outside_tools ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON outside_tools USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
