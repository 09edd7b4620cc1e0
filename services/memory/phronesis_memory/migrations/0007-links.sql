-- depends: 0006-vector-changes

-- What the news of an item said of its links, so that the graph of the users' items can be made again from here.
CREATE TABLE links (
    tenant text NOT NULL,
    source uuid NOT NULL REFERENCES items ON DELETE CASCADE,
    target uuid NOT NULL REFERENCES items ON DELETE CASCADE,
    type text NOT NULL,
    PRIMARY KEY (source, target, type)
);
CREATE INDEX links_target ON links (target);

-- The order in which a rebuild walks.
CREATE INDEX items_walk ON items (tenant, owner, id);

ALTER TABLE links ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON links USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
-- Both ends are rows of its own tenant; see 0005.
CREATE POLICY on_own_parent ON links AS RESTRICTIVE USING (true) WITH CHECK (
    (SELECT true FROM items WHERE items.id = links.source) AND (SELECT true FROM items WHERE items.id = links.target)
);
