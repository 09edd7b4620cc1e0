-- depends: 0002-tenants

ALTER TABLE instruction_elements ADD COLUMN position integer;
ALTER TABLE agent_profiles ADD COLUMN bootstrap text NOT NULL DEFAULT '';

-- Tier 3 is the library that a model asks for; a directive is part of an agent's own texts.
UPDATE instruction_elements SET tier = 1 WHERE 'directive' = ANY (use_cases) AND tier = 3;

-- The live texts are unique by tag, so there is one active version of each; an arm's stand in `arm_texts`, by arm and tag.
CREATE TABLE releases (
    tenant text NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    version text NOT NULL DEFAULT '',
    digest text NOT NULL DEFAULT '',
    tags text[] NOT NULL DEFAULT '{}',
    active boolean NOT NULL DEFAULT false,
    note text NOT NULL DEFAULT '',
    published_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, number)
);
CREATE UNIQUE INDEX releases_one_active ON releases (tenant) WHERE active;

-- All texts of a release that are the tenant's own.
CREATE TABLE release_texts (
    tenant text NOT NULL,
    number integer NOT NULL,
    tag text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('bundle', 'element')),
    content text NOT NULL,
    version text NOT NULL CHECK (version ~ '^\d{1,9}\.\d{1,9}\.\d{1,9}$'),
    status text NOT NULL CHECK (status IN ('active', 'deprecated', 'draft')),
    avg_tokens integer,
    tier integer CHECK (tier IN (1, 2, 3)),
    category text,
    dependencies text[],
    use_cases text[],
    position integer,
    PRIMARY KEY (tenant, number, tag),
    FOREIGN KEY (tenant, number) REFERENCES releases ON DELETE CASCADE
);

CREATE TABLE experiments (
    tenant text NOT NULL,
    name text NOT NULL,
    status text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'stopped')),
    started_at timestamptz NOT NULL DEFAULT now(),
    stopped_at timestamptz,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE experiment_arms (
    tenant text NOT NULL,
    experiment text NOT NULL,
    arm text NOT NULL,
    place integer NOT NULL,
    weight integer NOT NULL CHECK (weight > 0),
    users integer NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, experiment, arm),
    FOREIGN KEY (tenant, experiment) REFERENCES experiments ON DELETE CASCADE
);

CREATE TABLE arm_texts (
    tenant text NOT NULL,
    experiment text NOT NULL,
    arm text NOT NULL,
    tag text NOT NULL,
    content text NOT NULL,
    avg_tokens integer NOT NULL,
    PRIMARY KEY (tenant, experiment, arm, tag),
    FOREIGN KEY (tenant, experiment, arm) REFERENCES experiment_arms ON DELETE CASCADE
);

-- Who was told which arm, once for user and experiment: what keeps a user in its arm.
CREATE TABLE exposures (
    tenant text NOT NULL,
    experiment text NOT NULL,
    user_id text NOT NULL,
    arm text NOT NULL,
    exposed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, experiment, user_id),
    FOREIGN KEY (tenant, experiment, arm) REFERENCES experiment_arms ON DELETE CASCADE
);

CREATE TABLE outcomes (
    tenant text NOT NULL,
    experiment text NOT NULL,
    user_id text NOT NULL,
    metric text NOT NULL,
    count integer NOT NULL,
    total double precision NOT NULL,
    PRIMARY KEY (tenant, experiment, user_id, metric),
    FOREIGN KEY (tenant, experiment, user_id) REFERENCES exposures ON DELETE CASCADE
);

-- What the bundle of each data mode is made of, in its order. A release writes it into `instruction_bundles`.
CREATE VIEW tier2_combined WITH (security_invoker = true) AS
SELECT
    preface.mode AS tag,
    preface.content || E'\n\n' || string_agg(part.content, E'\n\n' ORDER BY part.position) AS content,
    array_agg(part.tag ORDER BY part.position) AS parts
FROM (
    SELECT split_part(tag, '/', 1) AS mode, content
    FROM instruction_bundles WHERE category = 'mode_preface' AND status = 'active'
) AS preface
CROSS JOIN (SELECT tag, content, position FROM instruction_elements WHERE tier = 2 AND status = 'active') AS part
GROUP BY preface.mode, preface.content;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'releases', 'release_texts', 'experiments', 'experiment_arms', 'arm_texts', 'exposures', 'outcomes'
    ] LOOP
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
