-- Loses the schedules whose runs are started by events: the service before knows none. Runs that they started go on.
DO $$ BEGIN PERFORM set_config('phronesis.tenant', '*', true); END $$;
DROP TABLE trigger_events;
DELETE FROM schedules WHERE on_event IS NOT NULL;
DROP INDEX schedules_of_event;
ALTER TABLE schedules DROP COLUMN on_event;
