-- depends: 0004-vector-changes

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
