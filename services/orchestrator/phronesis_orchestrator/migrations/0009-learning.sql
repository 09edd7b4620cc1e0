-- depends: 0008-outside

-- Which ended turns were not learnt from yet: the turns are the queue. Those from before this version are not gone through.
ALTER TABLE turns ADD COLUMN learnt boolean NOT NULL DEFAULT true;
ALTER TABLE turns ALTER COLUMN learnt SET DEFAULT false;
ALTER TABLE turns ADD COLUMN learn_after timestamptz;
ALTER TABLE turns ADD COLUMN learn_attempts int NOT NULL DEFAULT 0;
CREATE INDEX turns_unlearnt ON turns (tenant, user_id, ended_at) WHERE status = 'completed' AND NOT learnt AND NOT erased;

-- Ids of what memory put before a turn, so that what is forgotten is found wherever it may have been repeated.
ALTER TABLE turns ADD COLUMN recalled text[] NOT NULL DEFAULT '{}';
