-- depends: 0016-schedules

-- Schedules whose runs are started by events have no times: `cron` is empty, which the version before reads, too.
ALTER TABLE schedules ADD COLUMN on_event jsonb;
CREATE INDEX schedules_of_event ON schedules (tenant, (on_event ->> 'event')) WHERE enabled AND on_event IS NOT NULL;

-- The events that each of them was told, so that none starts a second run, and those of an hour can be counted.
CREATE TABLE trigger_events (
    tenant text NOT NULL,
    schedule_id uuid NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    event_id text NOT NULL,
    started boolean NOT NULL DEFAULT false,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (schedule_id, event_id)
);
CREATE INDEX trigger_events_of_time ON trigger_events (schedule_id, at);
ALTER TABLE trigger_events ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON trigger_events USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
CREATE POLICY on_own_parent ON trigger_events AS RESTRICTIVE USING (true)
    WITH CHECK ((SELECT true FROM schedules WHERE schedules.id = trigger_events.schedule_id));
