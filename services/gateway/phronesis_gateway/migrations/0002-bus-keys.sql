ALTER TABLE keys ADD COLUMN bus boolean NOT NULL DEFAULT false;
ALTER TABLE keys ADD COLUMN expires_at timestamptz;
ALTER TABLE keys ADD CONSTRAINT keys_of_the_bus_end CHECK (NOT bus OR expires_at IS NOT NULL);

CREATE INDEX revoked_keys_of_the_bus ON keys (expires_at) WHERE bus AND revoked_at IS NOT NULL;
