-- depends: 0020-audit

-- What a turn's user thinks of its answer; it goes with the turn's texts.
ALTER TABLE turns ADD COLUMN helpful boolean;
ALTER TABLE turns ADD COLUMN remark text;
ALTER TABLE turns ADD COLUMN rated_at timestamptz;
CREATE INDEX turns_helpful ON turns (tenant, created_at DESC) WHERE helpful;
CREATE INDEX turns_unhelpful ON turns (tenant, created_at DESC) WHERE NOT helpful;
-- The turns of everybody, newest first.
CREATE INDEX turns_of_tenant ON turns (tenant, created_at DESC);
