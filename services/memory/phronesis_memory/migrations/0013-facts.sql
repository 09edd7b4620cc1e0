-- depends: 0012-experience

-- What is known of a user, fact by fact. A held fact is found by an item whose owner is `facts:<user>`, which is nobody's name;
-- one that no longer holds has no item, and keeps the time in which it did. Of a slot one value is held at a time.
CREATE TABLE facts (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    owner text NOT NULL,
    slot text NOT NULL,
    value text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    predicate text NOT NULL,
    object text NOT NULL,
    body text NOT NULL,
    negated boolean NOT NULL,
    valid_from timestamptz NOT NULL,
    valid_to timestamptz,
    superseded_by uuid,
    ended_at timestamptz,
    item_id uuid,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    CHECK (valid_to >= valid_from)
);
CREATE UNIQUE INDEX facts_held ON facts (tenant, owner, slot) WHERE valid_to IS NULL;
CREATE INDEX facts_slot ON facts (tenant, owner, slot);
CREATE INDEX facts_listed ON facts (tenant, owner, recorded_at DESC, id);
CREATE INDEX facts_item ON facts (item_id);

-- Each time that a fact was said.
CREATE TABLE fact_sources (
    fact_id uuid NOT NULL REFERENCES facts ON DELETE CASCADE,
    source text NOT NULL,
    said_at timestamptz NOT NULL,
    origin text NOT NULL,
    confidence double precision NOT NULL,
    turn_id text,
    conversation_id text,
    PRIMARY KEY (fact_id, source)
);
CREATE INDEX fact_sources_conversation ON fact_sources (conversation_id);

-- What was forgotten, by ids alone, and what each service removed. A restored backup is made to forget it again.
CREATE TABLE forgettings (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    owner text NOT NULL,
    ids text[] NOT NULL,
    turns text[] NOT NULL,
    conversation_id text,
    removed jsonb NOT NULL DEFAULT '{}',
    requested_at timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz,
    again boolean NOT NULL DEFAULT false
);
CREATE INDEX forgettings_again ON forgettings (requested_at) WHERE again;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['facts', 'forgettings'] LOOP
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
ALTER TABLE fact_sources ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_parent ON fact_sources USING ((SELECT true FROM facts WHERE facts.id = fact_sources.fact_id));
