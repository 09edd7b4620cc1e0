-- depends: 0001-turns

ALTER TABLE conversations ADD COLUMN deleted_at timestamptz;
CREATE INDEX conversations_listed ON conversations (tenant, user_id, updated_at DESC, id DESC) WHERE deleted_at IS NULL;
DROP INDEX conversations_of_user;

-- A turn of a deleted conversation: its id stays, so that a repeat of it begins nothing, and no reading shows it.
ALTER TABLE turns ADD COLUMN erased boolean NOT NULL DEFAULT false;

CREATE TABLE deletions (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    user_id text NOT NULL,
    conversation_id uuid NOT NULL UNIQUE REFERENCES conversations (id) ON DELETE CASCADE,
    requested_at timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz
);

CREATE TABLE deletion_reports (
    deletion_id uuid NOT NULL REFERENCES deletions (id) ON DELETE CASCADE,
    service text NOT NULL,
    part int NOT NULL,
    parts int NOT NULL,
    removed jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (deletion_id, service, part)
);
