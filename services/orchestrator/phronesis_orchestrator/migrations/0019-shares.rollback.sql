-- Loses nothing but speed: indexes alone.
DROP INDEX turns_running;
DROP INDEX turns_queued_of_tenant;
DROP INDEX turns_queued_of_user;
