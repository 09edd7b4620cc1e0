-- depends: 0011-topics

-- What came of the tool calls of a turn. They hang on the turn's episode, and go with it.
CREATE TABLE tool_outcomes (
    episode_id uuid NOT NULL REFERENCES items ON DELETE CASCADE,
    place integer NOT NULL,
    tenant text NOT NULL,
    owner text NOT NULL,
    tool text NOT NULL,
    ok boolean NOT NULL,
    code text NOT NULL DEFAULT '',
    detail text NOT NULL DEFAULT '',
    ms integer NOT NULL,
    at timestamptz NOT NULL,
    -- As questions name it; a column, since row level security lets no index be searched by a function like `lower`.
    named text GENERATED ALWAYS AS (lower(replace(tool, '.', '_'))) STORED,
    -- What an error is found by: made once here, and not of a thousand rows for each question.
    words tsvector GENERATED ALWAYS AS (
        CASE WHEN NOT ok THEN to_tsvector('english', tool || ' ' || code || ' ' || detail) END
    ) STORED,
    PRIMARY KEY (episode_id, place)
);
CREATE INDEX tool_outcomes_uses ON tool_outcomes (tenant, owner, tool, ok, at);
CREATE INDEX tool_outcomes_failures ON tool_outcomes (tenant, owner, at DESC) WHERE NOT ok;
-- Without it, a question that names no tool is held against every failure.
CREATE INDEX tool_outcomes_named ON tool_outcomes (tenant, owner, named, at DESC) WHERE NOT ok;

-- How tasks that went well were done. The goal is the text of the item; what is not as good as this is refused here too.
CREATE TABLE strategies (
    item_id uuid PRIMARY KEY REFERENCES items ON DELETE CASCADE,
    tenant text NOT NULL,
    owner text NOT NULL,
    task_id text NOT NULL,
    approach text NOT NULL,
    avoid text NOT NULL DEFAULT '',
    tools_used text[] NOT NULL DEFAULT '{}',
    score double precision NOT NULL CHECK (score >= 0.75 AND score <= 1),
    uses integer NOT NULL DEFAULT 0,
    wins integer NOT NULL DEFAULT 0 CHECK (wins BETWEEN 0 AND uses),
    retired boolean NOT NULL DEFAULT false,
    UNIQUE (tenant, owner, task_id)
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['tool_outcomes', 'strategies'] LOOP
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

-- A row hangs on an item of its own tenant, as the words of an item do.
CREATE POLICY on_own_parent ON tool_outcomes AS RESTRICTIVE USING (true)
    WITH CHECK ((SELECT true FROM items WHERE items.id = tool_outcomes.episode_id));
CREATE POLICY on_own_parent ON strategies AS RESTRICTIVE USING (true)
    WITH CHECK ((SELECT true FROM items WHERE items.id = strategies.item_id));
