-- depends: 0003-releases

-- The agents that a tenant made: every version as it was published, one of them active. A deleted agent has none active.
CREATE TABLE agent_versions (
    tenant text NOT NULL,
    agent text NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    definition jsonb NOT NULL,
    active boolean NOT NULL DEFAULT false,
    note text NOT NULL DEFAULT '',
    published_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, agent, number)
);
CREATE UNIQUE INDEX agent_versions_one_active ON agent_versions (tenant, agent) WHERE active;

ALTER TABLE agent_versions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON agent_versions USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
