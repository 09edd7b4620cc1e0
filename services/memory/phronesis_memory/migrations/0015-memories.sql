-- depends: 0014-documents

-- Where and when something was said. A message knows its place in its conversation, so that it is found with its neighbours.
ALTER TABLE items ADD COLUMN said_in text, ADD COLUMN position integer, ADD COLUMN occurred_at timestamptz;
CREATE UNIQUE INDEX items_of_conversation ON items (said_in, position, tenant, owner) WHERE said_in IS NOT NULL;
CREATE INDEX items_by_time ON items (tenant, owner, (coalesce(occurred_at, created_at)) DESC, id DESC);

-- What an item said before it was changed; it goes with its item.
CREATE TABLE item_versions (
    item_id uuid NOT NULL REFERENCES items ON DELETE CASCADE,
    version bigint NOT NULL,
    body text NOT NULL,
    metadata jsonb NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (item_id, version)
);
ALTER TABLE item_versions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_parent ON item_versions USING ((SELECT true FROM items WHERE items.id = item_versions.item_id));
