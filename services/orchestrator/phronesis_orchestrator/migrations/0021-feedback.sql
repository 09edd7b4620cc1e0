-- depends: 0020-audit

-- What a turn's user thinks of its answer; it goes with the turn's texts.
ALTER TABLE turns ADD COLUMN helpful boolean;
ALTER TABLE turns ADD COLUMN remark text;
ALTER TABLE turns ADD COLUMN rated_at timestamptz;
CREATE INDEX turns_rated ON turns (tenant, helpful, created_at DESC) WHERE helpful IS NOT NULL;
-- The turns of everybody, newest first.
CREATE INDEX turns_of_tenant ON turns (tenant, created_at DESC);
